"""What an operator asks of a ledger, wherever it is: whose runs there are, and that nothing is left of one person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from ledger.ledger_beds import ADA, BOB, FileBed, LedgerBed, background, effect
from ledger.postgres_bed import KEYS, PostgresBed
from onetool_team.ledger.file_run_records import FileRunRecords
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_run_records import PostgresRunRecords
from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.ledger.run_records import RunRecords
from ot.errors import LedgerUnavailable
from ot.execution.caller import Caller
from ot.ledger.background_run import RunEnd
from postgres_server import PostgresServer

pytestmark = pytest.mark.anyio

WHO = "ada.of.the.first.team"
PEOPLE = ("ada", "bob", WHO)
MOST = 10
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = %(schema)s"


class Asked:
    """A ledger, what is asked of it, and all bytes that it keeps."""

    def __init__(self, bed: LedgerBed, records: RunRecords, file: Path | None = None) -> None:
        self.ledger = bed.ledger
        self.records = records
        self._bed = bed
        self._file = file

    async def holds(self, text: str) -> bool:
        """Return whether *text* is anywhere in what is kept."""
        if self._file:
            return any(text.encode() in path.read_bytes() for path in self._file.parent.glob("ledger.db*"))
        assert isinstance(self._bed, PostgresBed)
        tables = [name for (name,) in await self._bed.sql(TABLES, schema=self._bed.schema)]
        rows = [str(row) for table in tables for row in await self._bed.sql(f"SELECT t::text FROM {table} t")]
        return any(text in row for row in rows)

    def name_of(self, principal: str) -> str:
        """Return what stands for *principal* in what is kept."""
        ledger = self.ledger
        return ledger.place.who(principal).hex() if isinstance(ledger, PostgresLedger) else principal


@pytest.fixture(params=["file", "postgres"])
async def asked(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Asked]:
    """Each ledger that there is, empty: another one is one more line here."""
    if request.param == "file":
        file = tmp_path / "ledger" / "ledger.db"
        bed: LedgerBed = FileBed(file)
        found = Asked(bed, FileRunRecords(file, bed.ledger), file)
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        bed = PostgresBed(server.address, f"s{token_hex(8)}")
        assert isinstance(bed.ledger, PostgresLedger)
        found = Asked(bed, PostgresRunRecords(bed.ledger))
    yield found
    await bed.aclose()


async def in_the_background(asked: Asked, id: str, principal: str, created: float, end: Any = None) -> None:
    """Keep a run, which has ended if *end* says how."""
    await asked.ledger.add(background(id, principal, created), MOST)
    if end:
        start = await asked.ledger.begin(id)
        assert start
        assert await asked.ledger.end(id, start.number, RunEnd(end, created + 1))


async def ids(asked: Asked, most: int = MOST) -> list[str]:
    """Return the runs of everybody."""
    return [status.run.id for status in await asked.records.latest(PEOPLE, most)]


async def test_an_empty_ledger_knows_nobody(asked: Asked) -> None:
    assert await ids(asked) == []
    assert await asked.records.whose("b1", PEOPLE) == ""
    assert dict(await asked.records.count("ada")) == {"runs": 0, "calls": 0}
    await asked.records.forget("ada")


async def test_runs_of_everybody_are_listed_the_latest_first_and_open_ones_always(asked: Asked) -> None:
    await in_the_background(asked, "b1", "ada", 1000.0)
    await in_the_background(asked, "b2", "bob", 2000.0, "done")
    await in_the_background(asked, "b3", "ada", 3000.0, "failed")
    assert await ids(asked) == ["b3", "b2", "b1"]
    assert await ids(asked, 1) == ["b3", "b1"], "what has not ended is not left out"
    states = {status.run.id: (status.run.principal, status.state) for status in await asked.records.latest(PEOPLE)}
    assert states == {"b1": ("ada", "waiting"), "b2": ("bob", "done"), "b3": ("ada", "failed")}


async def test_a_run_says_whose_it_is_in_the_background_or_not(asked: Asked) -> None:
    await in_the_background(asked, "b1", "bob", 1000.0)
    await asked.ledger.send(effect("f1", 1, ADA))
    assert await asked.records.whose("b1", PEOPLE) == "bob"
    assert await asked.records.whose("f1", PEOPLE) == "ada"
    assert await asked.records.whose("f2", PEOPLE) == ""


async def test_of_a_person_who_is_forgotten_nothing_is_left_and_of_others_everything(asked: Asked) -> None:
    # Three letters of the alphabet that hashes are written in would be found by chance.
    for principal, caller in ((WHO, Caller(WHO)), ("bob", BOB)):
        await in_the_background(asked, f"{principal}-open", principal, 1000.0)
        await in_the_background(asked, f"{principal}-done", principal, 2000.0, "done")
        sent = effect(f"{principal}-front", 1, caller)
        assert await asked.ledger.send(sent) is None
        asked.ledger.record_end(sent, "done", "x")
        await asked.ledger.settle()
        await asked.ledger.send(effect(f"{principal}-front", 2, caller, amount=7))
    before = dict(await asked.records.count("bob"))
    assert before == dict(await asked.records.count(WHO)) == {"runs": 2, "calls": 2}
    assert await asked.holds(asked.name_of(WHO))

    await asked.records.forget(WHO)
    assert dict(await asked.records.count(WHO)) == {"runs": 0, "calls": 0}
    for text in (asked.name_of(WHO), f"{WHO}-open", f"{WHO}-done", f"{WHO}-front"):
        assert not await asked.holds(text), text
    assert dict(await asked.records.count("bob")) == before
    assert await ids(asked) == ["bob-done", "bob-open"]
    assert len(await asked.ledger.of_run("bob", "bob-front")) == 2
    assert set(await asked.ledger.list_left_behind()) <= {"bob-open"}
    assert await asked.ledger.begin(f"{WHO}-open") is None, "whoever carries it out finds nothing to do"


async def test_a_ledger_that_cannot_be_read_says_so(asked: Asked, tmp_path: Path) -> None:
    if isinstance(asked.records, FileRunRecords):
        (tmp_path / "ledger").mkdir()
        (tmp_path / "ledger" / "ledger.db").write_bytes(b"no database at all")
    else:
        nowhere = PostgresSessions("postgresql:///nobody?host=/nowhere", "onetool", answer_seconds=1.0)
        asked.records = PostgresRunRecords(PostgresLedger(nowhere, PostgresPlace(KEYS)))
    with pytest.raises(LedgerUnavailable):
        await asked.records.whose("b1", PEOPLE)
