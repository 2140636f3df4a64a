"""Which runs a worker takes from the book, and when: everybody's in turn, at a ring or soon without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from secrets import token_hex

import pytest

from ledger.ledger_beds import background, until
from ledger.postgres_bed import PostgresBed
from onetool_team.background.run_worker import RunWorker
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.run_bell import RunBell
from ot.ledger.background_run import RunEnd
from pace import PATIENCE
from postgres_server import PostgresServer

pytestmark = pytest.mark.anyio

SOON, LATE = 0.05, 10 * PATIENCE
"""How often it looks, in seconds."""


@dataclass
class Bench:
    """A book, a bell, and what workers carried out."""

    bed: PostgresBed
    bell: RunBell = field(default_factory=lambda: RunBell(MemoryState()))
    carried: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])
    go: dict[str, asyncio.Event] = field(default_factory=dict[str, asyncio.Event])
    """What each run waits for."""

    async def add(self, *ids: str) -> None:
        """Have runs of whoever their ids begin with in the book, in this order."""
        for number, id in enumerate(ids):
            self.go[id] = asyncio.Event()
            await self.bed.ledger.add(background(id, id.partition("-")[0], self.bed.now + number), 100)

    @asynccontextmanager
    async def working(self, look_seconds: float = LATE, at_once: int = 4) -> AsyncGenerator[asyncio.Future[None]]:
        """Have a worker work in the block."""
        ledger = self.bed.worker()

        async def carry_out(id: str) -> None:
            start = await ledger.begin(id)
            assert start
            await self.carried.put(id)
            await self.go[id].wait()
            await ledger.end(id, start.number, RunEnd("done", 2e9))

        working = asyncio.ensure_future(RunWorker(ledger, self.bell, look_seconds).work(carry_out, at_once))
        try:
            yield working
        finally:
            for _ in range(2):
                working.cancel()
                await asyncio.sleep(0)
            await asyncio.gather(working, return_exceptions=True)

    async def next(self) -> str:
        """Return the run that was begun next."""
        async with asyncio.timeout(PATIENCE):
            return await self.carried.get()


@pytest.fixture
async def bench(postgres: PostgresServer) -> AsyncIterator[Bench]:
    bed = PostgresBed(postgres.address, token_hex(8))
    yield Bench(bed)
    await bed.aclose()


async def test_one_person_has_half_of_the_places_and_another_passes_all_that_wait(bench: Bench) -> None:
    await bench.add(*(f"bob-{n}" for n in range(6)), "ann-1", "ann-2", "ann-3")
    async with bench.working():
        assert {"bob-0", "bob-1", "ann-1", "ann-2"} == {await bench.next() for _ in range(4)}
        bench.go["ann-1"].set()
        assert "ann-3" == await bench.next(), "as soon as there is a place"
        for id in ("ann-2", "ann-3", "bob-0"):
            bench.go[id].set()
        assert "bob-2" == await bench.next(), "there were places, and now one of his own"
        for event in bench.go.values():
            event.set()
        assert {"bob-3", "bob-4", "bob-5"} == {await bench.next() for _ in range(3)}


async def test_a_run_that_ends_while_the_book_is_looked_into_makes_place_for_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, looked, go_on = PostgresLedger.take_runs, asyncio.Event(), asyncio.Event()
    await bench.add("bob-0", "bob-1", "bob-2")
    async with bench.working():
        assert {"bob-0", "bob-1"} == {await bench.next() for _ in range(2)}

        async def take_late(self: PostgresLedger, most: int, share: int) -> list[str]:
            found = await take(self, most, share)
            looked.set()
            await go_on.wait()
            return found

        monkeypatch.setattr(PostgresLedger, "take_runs", take_late)
        await bench.bell.submit("")
        async with asyncio.timeout(PATIENCE):
            await looked.wait()
        bench.go["bob-0"].set()

        async def is_over() -> bool:
            status = await bench.bed.ledger.status("bob", "bob-0")
            return status is not None and status.state == "done"

        await until(is_over)
        for _ in range(3):
            await asyncio.sleep(0)  # the worker notices
        go_on.set()
        assert "bob-2" == await bench.next()


async def test_a_worker_that_waits_begins_at_the_ring(bench: Bench) -> None:
    async with bench.working():
        await bench.bell.submit("")
        await bench.add("ann-1")
        await bench.bell.submit("ann-1")
        assert "ann-1" == await bench.next()


async def test_a_run_that_nobody_rang_for_is_found_soon(bench: Bench) -> None:
    async with bench.working(SOON):
        await bench.add("ann-1")
        assert "ann-1" == await bench.next()


async def test_what_one_worker_has_no_place_for_another_is_rung_for(bench: Bench) -> None:
    async with bench.working(), bench.working():
        await bench.add(*(f"p{n}-run" for n in range(8)))
        await bench.bell.submit("")
        assert {f"p{n}-run" for n in range(8)} == {await bench.next() for _ in range(8)}


async def test_a_worker_that_is_asked_to_end_takes_nothing_more_and_lets_its_runs_end(bench: Bench) -> None:
    await bench.add("ann-1")
    async with bench.working() as working:
        assert "ann-1" == await bench.next()
        working.cancel()
        await asyncio.sleep(0)
        await bench.add("ann-2")
        await bench.bell.submit("")
        bench.go["ann-1"].set()
        await asyncio.wait_for(working, PATIENCE)
    assert bench.carried.empty()
    assert (status := await bench.bed.ledger.status("ann", "ann-1"))
    assert "done" == status.state
