"""Places that callers take in turn."""

from __future__ import annotations

import asyncio

import pytest

from ot.execution.heavy_calls import FairTurns

pytestmark = pytest.mark.anyio


class Line:
    """Callers who take a place and keep it until they are let go."""

    def __init__(self, places: int, each: int) -> None:
        self.turns = FairTurns(places, each)
        self.holding: list[str] = []
        self._let_go: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        """Ask for a place for each name, such as ``bob1``, which is one of bob's."""
        for name in names:
            self._let_go[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._hold(name))
        await self._settle()

    async def _hold(self, name: str) -> None:
        async with self.turns.turn(name.rstrip("0123456789")):
            self.holding.append(name)
            try:
                await self._let_go[name].wait()
            finally:
                self.holding.remove(name)

    async def let_go(self, name: str) -> None:
        self.end(name)
        await self._settle()

    def end(self, name: str) -> None:
        self._let_go[name].set()

    async def cancel(self, *names: str) -> None:
        for name in names:
            self._tasks[name].cancel()
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


async def test_nobody_has_more_than_a_part_of_the_places() -> None:
    line = Line(places=4, each=2)
    await line.ask("bob1", "bob2", "bob3", "ann1")
    assert line.holding == ["bob1", "bob2", "ann1"]
    await line.let_go("bob1")
    assert line.holding == ["bob2", "ann1", "bob3"]


async def test_who_waits_is_served_after_one_of_each_other_caller() -> None:
    line = Line(places=1, each=1)
    await line.ask("bob1", "bob2", "bob3", "ann1", "eve1")
    served: list[str] = []
    while line.holding:
        served.append(line.holding[0])
        await line.let_go(line.holding[0])
    assert served == ["bob1", "bob2", "ann1", "eve1", "bob3"]


async def test_a_cancelled_caller_neither_keeps_a_place_nor_waits() -> None:
    line = Line(places=1, each=1)
    await line.ask("bob1", "bob2", "ann1")
    await line.cancel("bob2")
    await line.cancel("bob1")
    assert line.holding == ["ann1"]
    assert not line.turns.has("bob")
    assert line.turns.has("ann")


async def test_a_place_is_not_lost_with_a_caller_who_is_cancelled_when_it_comes() -> None:
    line = Line(places=1, each=1)
    await line.ask("bob1")
    waiting = asyncio.create_task(line.turns.turn("ann").__aenter__())
    await line.ask("eve1")
    line.end("bob1")
    await asyncio.sleep(0)
    assert not line.turns.has("bob")
    waiting.cancel()  # her turn has come, and her task has not run yet
    await line.ask()
    assert waiting.cancelled()
    assert line.holding == ["eve1"]


async def test_when_all_of_a_caller_are_cancelled_at_once_no_place_is_lost() -> None:
    line = Line(places=1, each=1)
    await line.ask("bob1", "bob2", "bob3", "ann1")
    await line.cancel("bob1", "bob2", "bob3")
    assert line.holding == ["ann1"]
    assert not line.turns.has("bob")
    await line.let_go("ann1")
    await line.ask("bob4")
    assert line.holding == ["bob4"]
