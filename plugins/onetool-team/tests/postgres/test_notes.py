"""The notes of a team's people in its PostgreSQL: they are found as in a file, by words that nobody can read there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from ledger.postgres_bed import KEYS
from notes.test_notes_contract import *  # noqa: F403 - the contract's tests
from notes.test_notes_contract import found, written
from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.postgres.notes import CANDIDATES, PostgresNotes
from onetool_team.postgres.person_rows import PersonRows
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.state_keys import StateKeys
from ot.execution.caller import Caller
from ot.execution.tool_context import ToolContext, use
from ot.files.path_guard import PathGuard
from ot.notes.kept_notes import Chosen, KeptNotes
from ot.notes.notes_database import FileNotes
from ot_tools import memory
from pace import PATIENCE, patiently
from postgres.rows_bed import TABLES
from postgres_server import PostgresServer

SCHEMA = "notes"
PLACES = ("user",)
BOUND = 64 << 20


@dataclass
class Process:
    """One process of the team, whose event loop runs in a thread."""

    loop: asyncio.AbstractEventLoop
    rows: TeamRows

    def notes(self, principal: str, most_bytes: int = BOUND) -> PostgresNotes:
        """Return the notes of *principal*."""
        return PostgresNotes(self.rows, principal, most_bytes, self.loop)

    def wait(self, work: Any) -> Any:
        """Return what *work* returns on the loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def sql(self, text: str, **given: Any) -> Any:
        """Return the rows of a statement."""
        return self.wait(self.rows.rows(text, **given))


@contextmanager
def running(server: PostgresServer, keys: StateKeys = KEYS) -> Generator[Process]:
    """Yield one more process."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    sessions = PostgresSessions(server.address, SCHEMA, answer_seconds=PATIENCE)
    try:
        yield Process(loop, TeamRows(sessions, keys))
    finally:
        asyncio.run_coroutine_threadsafe(sessions.aclose(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def process(postgres: PostgresServer) -> Iterator[Process]:
    with running(postgres) as process:
        yield process


@pytest.fixture
def principal() -> str:
    """Somebody who has no notes."""
    return f"token|{token_hex(8)}"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, process: Process, principal: str) -> Iterator[ToolContext]:
    """What the pack has of a team's server."""
    guard = PathGuard((tmp_path,))
    context = ToolContext(guard, tmp_path, caller=Caller(principal), open_notes=process.notes, user_dir=tmp_path)
    with use(context):
        yield context
    assert not (tmp_path / "data").exists()


def ids_in(notes: KeptNotes, query: str, most: int = 20) -> list[int]:
    """Return what is found."""
    return [row.id for row in notes.search(query, Chosen(PLACES), most)]


def test_a_note_comes_back_whole_in_another_process(postgres: PostgresServer, principal: str) -> None:
    text = "Line one\n\n  line two \t\0 é 部署 🎉"
    kept = memory.write(text=text, tags=["Api ", "api", "Größe"], scope="user")
    assert kept == memory.read(id=kept["id"])
    with running(postgres) as other:
        row = other.notes(principal).get(kept["id"], PLACES)
    assert row
    assert (row.text, row.tags, row.chars) == (text, ["api", "grösse"], len(text))


def test_what_is_kept_has_no_word_and_no_tag_of_a_note(process: Process, principal: str) -> None:
    written("Nordholz delivers the zirconium", tags=["supplier"])
    shown = str(process.sql("SELECT n::text, i::text FROM notes n, note_ids i"))
    for word in ("ordholz", "irconium", "upplier", principal):
        assert word not in shown
    assert process.rows.who(principal).hex() in shown


def test_the_same_word_of_two_people_is_kept_as_two(process: Process) -> None:
    for name in ("ann", "bob"):
        process.notes(name).add("user", "zirconium", ["supplier"], 9)
    words = process.sql(
        "SELECT words::text, tags FROM notes WHERE principal = ANY (%(who)s)",
        who=[process.rows.who("ann"), process.rows.who("bob")],
    )
    assert len({text for text, _ in words}) == len({tuple(tags) for _, tags in words}) == 2


def test_notes_that_were_not_written_with_the_keys_are_not_shown(process: Process, principal: str) -> None:
    mine, other = process.notes(principal), process.notes("mallory")
    mine.add("user", "pay Ann", [], 9)
    other.add("user", "pay Mallory", [], 9)
    move = "UPDATE notes SET note = (SELECT note FROM notes WHERE principal = %(other)s) WHERE principal = %(who)s"
    process.sql(move, who=process.rows.who(principal), other=process.rows.who("mallory"))
    assert mine.get(1, PLACES) is None
    assert mine.latest(Chosen(PLACES), 9) == mine.search("pay", Chosen(PLACES), 9) == []


def test_after_a_change_of_keys_older_notes_and_tags_are_found(postgres: PostgresServer, principal: str) -> None:
    old, new = "o" * 32, "n" * 32
    with running(postgres, StateKeys([old])) as before, running(postgres, StateKeys([new, old])) as after:
        first = before.notes(principal).add("user", "deploys on tuesday", ["decision"], 9)
        notes = after.notes(principal)
        second = notes.add("user", "deploys on friday", ["decision"], 9)
        assert sorted(ids_in(notes, "deploying")) == [first.id, second.id]
        assert ids_in(notes, '"on tuesday"') == [first.id]
        assert [row.id for row in notes.latest(Chosen(PLACES, ["decision"]), 9)] == [second.id, first.id]
        assert notes.tags(Chosen(PLACES)) == [("decision", 2)]


def test_processes_that_write_at_the_same_time_lose_nothing_and_give_no_id_twice(
    process: Process, postgres: PostgresServer, principal: str
) -> None:
    first = process.notes(principal).add("user", "log", [], 99)
    with running(postgres) as other, ThreadPoolExecutor(8) as pool:
        places = [one.notes(principal) for one in (process, other)] * 8
        added = list(pool.map(lambda notes: notes.add("user", "x", [], 99).id, places))
        list(pool.map(lambda notes: notes.change(first.id, PLACES, lambda row: f"{row.text}\nline", None), places))
    assert len({*added, first.id}) == 17
    row = process.notes(principal).get(first.id, PLACES)
    assert row
    assert row.text.count("line") == 16


def test_nobody_keeps_more_notes_or_bytes_than_the_settings_say(process: Process, principal: str) -> None:
    notes = process.notes(principal, 10_000)
    notes.add("user", "x", [], 2)
    kept = notes.add("user", "y", [], 2)
    with pytest.raises(ValueError):
        notes.add("user", "z", [], 2)
    large = token_hex(10_000)
    with pytest.raises(OSError, match="no room"):
        notes.add("user", large, [], 9)
    with pytest.raises(OSError, match="no room"):
        notes.change(kept.id, PLACES, lambda _: large, None)
    assert notes.delete([kept.id], PLACES) is None
    assert notes.add("user", "z", [], 2).id == kept.id + 1


def test_a_note_of_many_different_words_is_kept(process: Process, principal: str) -> None:
    many = " ".join(f"w{n}" for n in range(90_000))
    row = process.notes(principal).add("user", many, [], 9)
    assert ids_in(process.notes(principal), "w7") == [row.id]


def test_of_more_notes_than_are_looked_into_the_best_are_those_of_a_file(
    process: Process, principal: str, tmp_path: Path
) -> None:
    file, shared = FileNotes(tmp_path / "notes.db"), process.notes(principal)
    for n in range(CANDIDATES + 20):
        text = "deploy " * (1 + n % 3) + "and other words " * (n % 5 + (n != 77))
        for notes in (file, shared):
            notes.add("user", text, [], 999)
    assert ids_in(shared, "deploys", 1) == ids_in(file, "deploys", 1)
    assert len(ids_in(shared, "deploys", 1000)) == CANDIDATES + 20


def test_large_notes_are_fetched_a_few_at_a_time(
    process: Process, principal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = process.notes(principal)
    monkeypatch.setattr("onetool_team.postgres.notes.LOT_BYTES", 1000)
    ids = [notes.add("user", f"deploy {token_hex(300)} ☂", ["a"], 99).id for _ in range(9)]
    assert [row.id for row in notes.latest(Chosen(PLACES), 99)] == ids[::-1]
    assert sorted(ids_in(notes, "deploys")) == ids
    assert ids_in(notes, "☂") == ids[::-1]
    assert notes.tags(Chosen(PLACES)) == [("a", 9)]


def test_while_postgres_is_away_a_note_is_refused_with_the_reason(
    process: Process, postgres: PostgresServer, principal: str
) -> None:
    written("kept")
    postgres.kill()
    try:
        with pytest.raises(OSError, match="the notes cannot be reached now"):
            memory.write(text="lost")
    finally:
        postgres.start()
    for _ in patiently():
        with suppress(OSError):
            assert [note["start"] for note in memory.list()] == ["kept"]
            return
    raise AssertionError("PostgreSQL is there again")


def test_of_a_person_who_is_forgotten_no_row_is_left(process: Process, principal: str) -> None:
    person = PersonRows(process.rows, [])
    written("one", "two", tags=["x"])
    assert process.wait(person.count(principal))["notes"] == 2
    process.wait(person.forget(principal))
    for (table,) in process.sql(TABLES):
        rows = process.sql(f"SELECT count(*) FROM {table} WHERE principal = %(who)s", who=process.rows.who(principal))
        assert rows == [(0,)], table
    assert found("one") == []
