"""LedgerFile: the ledger's SQLite file, which several servers of one user write at the same time."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any

import orjson

from ot.errors import RunFenced, TooManyRuns
from ot.execution.ledger import Effect, HowEnded, UnknownEffect
from ot.files import shared_database
from ot.ledger.background_run import BackgroundRun, RunEnd, RunStatus
from ot.ledger.entries import LedgerEntry, encode_value, read_value
from ot.ledger.fingerprint import SAME_CALL_SECONDS, fingerprint
from ot.ledger.run_book import CANCELLED_WAITING, FENCED, LEASE_SECONDS, Beat, Start
from ot.ledger.writer_locks import WriterLocks

LEDGER = Path("ledger") / "ledger.db"
"""Where it is in the user's own directory."""
VERSION = 2
DAY = 86_400.0
CLEAN_SECONDS = 3600.0
COMMITS = 250
"""How many there may be outside of ``patient`` until the write-ahead log is to be copied into the file."""
PAGES = 1000
"""How long that log is when it is copied, as SQLite has it."""
HERE = "ifnull(?, directory) = directory"
"""Anywhere, where no directory is given."""

TABLES = """
CREATE TABLE ledger_key (key BLOB NOT NULL);
CREATE TABLE effects (principal TEXT NOT NULL, run TEXT NOT NULL, call INTEGER NOT NULL, tool TEXT NOT NULL,
    line INTEGER, fingerprint TEXT NOT NULL, state TEXT NOT NULL, at REAL NOT NULL, ended REAL, writer TEXT NOT NULL,
    start INTEGER NOT NULL DEFAULT 0, value TEXT, given_key TEXT NOT NULL DEFAULT '',
    directory TEXT NOT NULL DEFAULT '', PRIMARY KEY (run, start, call)) WITHOUT ROWID;
CREATE INDEX effects_open ON effects (principal, fingerprint) WHERE state IN ('sent', 'unknown');
CREATE INDEX effects_by_time ON effects (at);
CREATE TABLE runs (id TEXT PRIMARY KEY, principal TEXT NOT NULL, run TEXT NOT NULL, state TEXT NOT NULL,
    starts INTEGER NOT NULL DEFAULT 0, beat REAL NOT NULL DEFAULT 0, writer TEXT NOT NULL DEFAULT '', question TEXT,
    answer TEXT, cancelled INTEGER NOT NULL DEFAULT 0, ending TEXT, created REAL NOT NULL,
    packs TEXT) WITHOUT ROWID;
CREATE INDEX runs_by_time ON runs (principal, created);
"""
SECOND_VERSION = "ALTER TABLE effects ADD COLUMN directory TEXT NOT NULL DEFAULT ''"
"""An index of what is open alone: of what has ended, which is nearly all, nobody asks by fingerprint."""


class LedgerFile:
    """Reads and writes the file; every method blocks and is called on one thread."""

    def __init__(
        self, path: Path, *, power: bool = False, days: int = 30, clock: Callable[[], float] = time.time
    ) -> None:
        """Use *path*, made at the first write; with *power*, what is written survives a loss of power."""
        self._path = path
        self.power = power
        self._days = days
        self.clock = clock
        self._locks = WriterLocks(path.parent / "writers")
        self._connection: sqlite3.Connection | None = None
        self._key = b""
        self._clean_at = 0.0 if days else inf
        self._commits = 0

    def begin(self) -> None:
        """Begin a transaction."""
        self._open().execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Keep what was written since ``begin``."""
        self._open().execute("COMMIT")
        self._commits += 1

    @property
    def is_quick(self) -> bool:
        """Whether a call is written without a wait: nothing has to be opened, synced, removed or copied."""
        is_due = self._commits >= COMMITS or self.clock() >= self._clean_at
        return self._connection is not None and not self.power and not is_due

    @contextmanager
    def patient(self) -> Generator[None]:
        """Inside the block, wait for whoever else writes to the file, and do what is due; outside nothing waits."""
        self._set(shared_database.BUSY_SECONDS, PAGES)
        try:
            yield
        finally:
            self._set(0, 0)
            self._commits = 0

    def _set(self, busy_seconds: float, pages: int) -> None:
        if self._connection is not None:
            self._connection.execute(f"PRAGMA busy_timeout = {int(busy_seconds * 1000)}")
            self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")

    def roll_back(self) -> None:
        """Forget what was written since ``begin``."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def send(self, effect: Effect, again: bool) -> UnknownEffect | None:
        """Write *effect* as sent, or return the same call whose effect is unknown."""
        connection, now = self._open(), self.clock()
        principal = effect.caller.principal
        found = fingerprint(effect.tool.full_name, effect.arguments, self._key)
        if effect.start and not self._goes_on(effect.run_id, effect.start):
            raise RunFenced(FENCED)
        if not again and (earlier := self._unknown(principal, found, now)):
            return earlier
        row = (principal, effect.run_id, effect.call_id, effect.tool.full_name, effect.line, found, now)
        connection.execute(
            "INSERT INTO effects (principal, run, call, tool, line, fingerprint, at, given_key, state, writer, start,"
            " directory) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'sent', ?, ?, ?)",
            (*row, effect.given_key, self._locks.own, effect.start, effect.directory),
        )
        return None

    def _goes_on(self, run: str, start: int) -> bool:
        """Return whether *start* is the latest of a run that has not ended."""
        found = self._open().execute("SELECT starts, ending FROM runs WHERE id = ?", (run,)).fetchone()
        return found == (start, None)

    def write_end(self, effect: Effect, how: HowEnded, value: Any, at: float) -> None:
        """Write how *effect* ended, and when."""
        self._open().execute(
            "UPDATE effects SET state = ?, ended = ?, value = ? WHERE run = ? AND start = ? AND call = ?",
            (how, at, encode_value(value), effect.run_id, effect.start, effect.call_id),
        )

    def _unknown(self, principal: str, found: str, now: float) -> UnknownEffect | None:
        rows = self._open().execute(
            "SELECT run, line, at, state, writer FROM effects"
            " WHERE principal = ? AND fingerprint = ? AND state IN ('sent', 'unknown') AND at > ? ORDER BY at DESC",
            (principal, found, now - SAME_CALL_SECONDS),
        )
        for run, line, at, state, writer in rows.fetchall():
            if state == "unknown" or not self._locks.is_alive(writer):
                return UnknownEffect(run, line, at)
        return None

    def of_run(self, principal: str, run: str, directory: str | None = None) -> list[LedgerEntry]:
        """Return the calls of one run, as they were made; with *directory* only those made there."""
        chosen = f"principal = ? AND run = ? AND {HERE} ORDER BY at, start, call"
        return list(self._entries(chosen, (principal, run, directory)))

    def unknown(self, principal: str, most: int, directory: str | None = None) -> list[LedgerEntry]:
        """Return the latest calls, all or of *directory*, whose effect is unknown."""
        chosen = f"principal = ? AND {HERE} AND state IN ('sent', 'unknown') ORDER BY at DESC"
        found = (entry for entry in self._entries(chosen, (principal, directory)) if entry.state == "unknown")
        return list(islice(found, most))  # what is under way does not count

    def _entries(self, chosen: str, values: tuple[Any, ...]) -> Iterator[LedgerEntry]:
        if self._connection is None and not self._path.exists():
            return
        columns = "run, call, tool, line, state, at, ended, start, value, given_key, directory, writer"
        is_alive = cache(self._locks.is_alive)
        found = self._open().execute(f"SELECT {columns} FROM effects WHERE {chosen}", values)
        for *row, value, key, directory, writer in found:
            entry = LedgerEntry(*row, value=read_value(value), given_key=key, directory=directory)
            if entry.state == "sent" and not is_alive(writer):
                entry = replace(entry, state="unknown")
            yield entry

    # ---------------------------------------------------------------- runs in the background

    def add(self, run: BackgroundRun, most_open: int) -> None:
        """Keep a new run."""
        open_runs = "SELECT count(*) FROM runs WHERE principal = ? AND ending IS NULL"
        (found,) = self._open().execute(open_runs, (run.principal,)).fetchone()
        if found >= most_open:
            raise TooManyRuns(most_open)
        self._open().execute(
            "INSERT INTO runs (id, principal, run, state, created, writer) VALUES (?, ?, ?, 'waiting', ?, ?)",
            (run.id, run.principal, _json(run.as_json()), run.created, self._locks.own),
        )

    def begin_run(self, id: str) -> Start | None:
        """Return the next start of a run."""
        row = self._row("SELECT run, starts, ending, cancelled, beat, writer FROM runs WHERE id = ?", (id,))
        if row is None:
            return None
        run, ending = BackgroundRun.of_json(orjson.loads(row["run"])), row["ending"]
        if ending is not None:
            return Start(run, 0, end=RunEnd.of_json(orjson.loads(ending)))
        is_others = row["starts"] and row["writer"] != self._locks.own
        if is_others and self._is_carried_out(row["starts"], row["beat"], row["writer"]):
            return Start(run, 0, alive=True)
        self._open().execute(
            "UPDATE runs SET starts = starts + 1, state = 'running', beat = ?, writer = ?, question = NULL,"
            " answer = NULL WHERE id = ?",
            (self.clock(), self._locks.own, id),
        )
        effects = self.of_run(run.principal, id)
        return Start(run, row["starts"] + 1, cancelled=bool(row["cancelled"]), effects=effects)

    def use_packs(self, id: str, start: int, packs: Mapping[str, str]) -> Mapping[str, str]:
        """Note the packs of a run, or return those noted first."""
        if not self._goes_on(id, start):
            raise RunFenced(FENCED)
        self._open().execute("UPDATE runs SET packs = ? WHERE id = ? AND packs IS NULL", (_json(dict(packs)), id))
        (noted,) = self._open().execute("SELECT packs FROM runs WHERE id = ?", (id,)).fetchone()
        return orjson.loads(noted)

    def beat(self, id: str, start: int) -> Beat:
        """Show that *start* is alive."""
        if not self._goes_on(id, start):
            return Beat(fenced=True)
        self._open().execute("UPDATE runs SET beat = ? WHERE id = ?", (self.clock(), id))
        row = self._row("SELECT cancelled, answer FROM runs WHERE id = ?", (id,))
        assert row is not None
        return Beat(cancelled=bool(row["cancelled"]), answer=row["answer"] and orjson.loads(row["answer"]))

    def ask(self, id: str, start: int, question: Mapping[str, Any] | None) -> None:
        """Have the run ask, or go on."""
        if not self._goes_on(id, start):
            raise RunFenced(FENCED)
        state, text = ("asks", _json(question)) if question else ("running", None)
        self._open().execute("UPDATE runs SET state = ?, question = ?, answer = NULL WHERE id = ?", (state, text, id))

    def answer(self, principal: str, id: str, number: int, answer: Mapping[str, Any]) -> bool:
        """Answer a question."""
        row = self._row("SELECT question FROM runs WHERE id = ? AND principal = ? AND state = 'asks'", (id, principal))
        if row is None or orjson.loads(row["question"]).get("number") != number:
            return False
        # It no longer asks: a client that looks again must not repeat the question.
        answered = "UPDATE runs SET answer = ?, question = NULL, state = 'running' WHERE id = ?"
        self._open().execute(answered, (_json(answer), id))
        return True

    def end_run(self, id: str, start: int, end: RunEnd) -> bool:
        """Write how a run ended."""
        if not self._goes_on(id, start):
            return False
        self._open().execute(
            "UPDATE runs SET state = ?, ending = ?, question = NULL, answer = NULL WHERE id = ?",
            (end.state, _json(end.as_json()), id),
        )
        return True

    def cancel(self, principal: str, id: str) -> RunStatus | None:
        """Want a run to end."""
        mine = (id, principal)
        self._open().execute("UPDATE runs SET cancelled = 1 WHERE id = ? AND principal = ? AND ending IS NULL", mine)
        end = RunEnd("cancelled", self.clock(), (CANCELLED_WAITING,))
        self._open().execute(
            "UPDATE runs SET state = 'cancelled', ending = ? WHERE id = ? AND principal = ? AND state = 'waiting'",
            (_json(end.as_json()), *mine),
        )
        return self.status(principal, id)

    def status(self, principal: str, id: str) -> RunStatus | None:
        """Return what is known about a run."""
        return next(self._statuses("id = ? AND principal = ?", (id, principal)), None)

    def runs(self, principal: str, most: int, directory: str | None = None) -> list[RunStatus]:
        """Return the latest runs, all or those begun in *directory*."""
        begun = "json_extract(run, '$.directory')"
        chosen = f"principal = ? AND ifnull(?, {begun}) IS {begun} ORDER BY created DESC LIMIT ?"
        return list(self._statuses(chosen, (principal, directory, most)))

    def list_left_behind(self) -> list[str]:
        """Return the open runs that nobody alive carries out."""
        if self._connection is None and not self._path.exists():
            return []
        columns = "id, starts, beat, writer"
        rows = self._open().execute(f"SELECT {columns} FROM runs WHERE ending IS NULL").fetchall()
        return [id for id, starts, beat, writer in rows if not self._is_carried_out(starts, beat, writer)]

    def _is_carried_out(self, starts: int, beat: float, writer: str) -> bool:
        """Return whether the writer is alive, and has beaten within its lease once the run began."""
        silent = starts and beat <= self.clock() - LEASE_SECONDS
        return not silent and self._locks.is_alive(writer)

    def _statuses(self, chosen: str, values: tuple[Any, ...]) -> Iterator[RunStatus]:
        if self._connection is None and not self._path.exists():
            return
        columns = "run, state, starts, question, cancelled, ending"
        for row in self._open().execute(f"SELECT {columns} FROM runs WHERE {chosen}", values).fetchall():
            run, state, starts, question, cancelled, ending = row
            yield RunStatus(
                BackgroundRun.of_json(orjson.loads(run)),
                state,
                starts,
                question and orjson.loads(question),
                bool(cancelled),
                RunEnd.of_json(orjson.loads(ending)) if ending else None,
            )

    def _row(self, chosen: str, values: tuple[Any, ...]) -> dict[str, Any] | None:
        cursor = self._open().execute(chosen, values)
        row = cursor.fetchone()
        return dict(zip((column[0] for column in cursor.description), row, strict=True)) if row else None

    def clean(self) -> None:
        """Remove what is older than it is to be kept, now and then."""
        if self.clock() >= self._clean_at:
            self._clean_at = self.clock() + CLEAN_SECONDS
            before = self.clock() - self._days * DAY
            # What a run in the background did is known until it has ended, however long that takes.
            open_runs = "SELECT id FROM runs WHERE ending IS NULL"
            self._open().execute(f"DELETE FROM effects WHERE at < ? AND run NOT IN ({open_runs})", (before,))
            self._open().execute("DELETE FROM runs WHERE created < ? AND ending IS NOT NULL", (before,))

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = shared_database.open_shared_database(self._path, _make_tables, power=self.power)
            self._locks.hold()
            (self._key,) = self._connection.execute("SELECT key FROM ledger_key").fetchone()
        return self._connection

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
        self._locks.release()


def _make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > VERSION:
        connection.execute("ROLLBACK")
        raise sqlite3.DatabaseError(f"its version {found} needs a newer release")
    if found == 0:
        for statement in TABLES.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO ledger_key VALUES (?)", (secrets.token_bytes(32),))
    if found == 1:
        connection.execute(SECOND_VERSION)
    if found < VERSION:
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
