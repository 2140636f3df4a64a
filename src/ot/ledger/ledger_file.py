"""LedgerFile: the ledger's SQLite file, which several servers of one user write at the same time."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from ot.execution.ledger import Effect, HowEnded, UnknownEffect
from ot.files.no_links import NO_LINK, make_private
from ot.ledger.entries import Entry
from ot.ledger.fingerprint import fingerprint
from ot.ledger.writer_locks import WriterLocks

VERSION = 1
BUSY_SECONDS = 5.0
SAME_CALL_SECONDS = 24 * 3600.0
"""How long the same call is remembered whose effect is unknown."""
DAY = 86_400.0
CLEAN_SECONDS = 3600.0

TABLES = """
CREATE TABLE ledger_key (key BLOB NOT NULL);
CREATE TABLE effects (principal TEXT NOT NULL, run TEXT NOT NULL, call INTEGER NOT NULL, tool TEXT NOT NULL,
    line INTEGER, fingerprint TEXT NOT NULL, state TEXT NOT NULL, at REAL NOT NULL, ended REAL, writer TEXT NOT NULL,
    PRIMARY KEY (run, call)) WITHOUT ROWID;
CREATE INDEX effects_open ON effects (principal, fingerprint) WHERE state IN ('sent', 'unknown');
CREATE INDEX effects_by_time ON effects (at);
"""
"""An index of what is open alone: of what has ended, which is nearly all, nobody asks by fingerprint."""


class LedgerFile:
    """Reads and writes the file; every method blocks and is called on one thread."""

    def __init__(
        self, path: Path, *, power: bool = False, days: int = 30, clock: Callable[[], float] = time.time
    ) -> None:
        """Use *path*, made at the first write; with *power*, what is written survives a loss of power."""
        self._path = path
        self._power = power
        self._days = days
        self._clock = clock
        self._locks = WriterLocks(path.parent / "writers")
        self._connection: sqlite3.Connection | None = None
        self._key = b""
        self._clean_at = 0.0

    def begin(self) -> None:
        """Begin a transaction."""
        self._opened().execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Keep what was written since ``begin``."""
        self._opened().execute("COMMIT")

    def roll_back(self) -> None:
        """Forget what was written since ``begin``."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def send(self, effect: Effect, again: bool) -> UnknownEffect | None:
        """Write *effect* as sent, or return the same call whose effect is unknown."""
        connection, now = self._opened(), self._clock()
        principal = effect.caller.principal
        found = fingerprint(effect.tool.full_name, effect.arguments, self._key)
        if not again and (earlier := self._unknown(principal, found, now)):
            return earlier
        row = (principal, effect.run_id, effect.call_id, effect.tool.full_name, effect.line, found, now)
        connection.execute(
            "INSERT INTO effects (principal, run, call, tool, line, fingerprint, at, state, writer)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, 'sent', ?)",
            (*row, self._locks.own),
        )
        return None

    def ended(self, effect: Effect, how: HowEnded) -> None:
        """Write how *effect* ended."""
        self._opened().execute(
            "UPDATE effects SET state = ?, ended = ? WHERE run = ? AND call = ?",
            (how, self._clock(), effect.run_id, effect.call_id),
        )

    def _unknown(self, principal: str, found: str, now: float) -> UnknownEffect | None:
        rows = self._opened().execute(
            "SELECT run, line, at, state, writer FROM effects"
            " WHERE principal = ? AND fingerprint = ? AND state IN ('sent', 'unknown') AND at > ? ORDER BY at DESC",
            (principal, found, now - SAME_CALL_SECONDS),
        )
        for run, line, at, state, writer in rows.fetchall():
            if state == "unknown" or not self._locks.is_alive(writer):
                return UnknownEffect(run, line, at)
        return None

    def of_run(self, principal: str, run: str) -> list[Entry]:
        """Return the calls of one run, as they were made."""
        return list(self._entries("principal = ? AND run = ? ORDER BY at, call", (principal, run)))

    def unknown(self, principal: str, most: int) -> list[Entry]:
        """Return the latest calls whose effect is unknown."""
        chosen = "principal = ? AND state IN ('sent', 'unknown') ORDER BY at DESC LIMIT ?"
        return [entry for entry in self._entries(chosen, (principal, most)) if entry.state == "unknown"]

    def _entries(self, chosen: str, values: tuple[Any, ...]) -> Iterator[Entry]:
        if self._connection is None and not self._path.exists():
            return
        columns = "run, call, tool, line, state, at, ended, writer"
        alive: dict[str, bool] = {}
        for *row, writer in self._opened().execute(f"SELECT {columns} FROM effects WHERE {chosen}", values):
            entry = Entry(*row)
            if entry.state == "sent" and not alive.setdefault(writer, self._locks.is_alive(writer)):
                entry = Entry(*row[:4], "unknown", *row[5:])
            yield entry

    def clean(self) -> None:
        """Remove what is older than it is to be kept, now and then."""
        if self._days and self._clock() >= self._clean_at:
            self._clean_at = self._clock() + CLEAN_SECONDS
            before = self._clock() - self._days * DAY
            self._opened().execute("DELETE FROM effects WHERE at < ?", (before,))

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = _open(self._path, power=self._power)
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


PRAGMAS: Mapping[bool, Literal["FULL", "NORMAL"]] = {True: "FULL", False: "NORMAL"}
"""How hard SQLite tries: a crash of the process loses nothing either way, a loss of power does with NORMAL."""


def _open(path: Path, *, power: bool) -> sqlite3.Connection:
    make_private(path.parent)
    # SQLite gives its side files the mode of the file itself.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {PRAGMAS[power]}")
        connection.execute("PRAGMA trusted_schema = OFF")
        _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


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
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
