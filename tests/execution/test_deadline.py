"""A run's clock stands still while a person is asked; places are taken by callers in turn."""

from __future__ import annotations

import asyncio
import time

import pytest

from ot.execution.deadline import Deadline
from ot.execution.heavy_calls import FairTurns

pytestmark = pytest.mark.anyio

LONG = 600.0
"""Longer than a test may take: what waits so long has not been ended."""


async def test_a_timeout_ends_at_the_deadline_or_earlier() -> None:
    for deadline, at_most in ((Deadline.after(0.05), LONG), (Deadline.after(LONG), 0.05), (Deadline.after(-1), LONG)):
        with pytest.raises(TimeoutError):
            async with deadline.timeout(at_most):
                await asyncio.sleep(LONG)


async def test_while_it_is_paused_it_moves_on_with_the_clock() -> None:
    deadline = Deadline.after(10)
    at = deadline.at
    with deadline.pause():
        left = deadline.seconds_left
        await asyncio.sleep(0.05)
        assert deadline.seconds_left == pytest.approx(left, abs=0.01)
        assert deadline.at > at + 0.04
    assert at + 0.04 < deadline.at < at + LONG
    moved = deadline.at
    await asyncio.sleep(0.02)
    assert deadline.at == moved


async def test_a_timeout_outlasts_a_pause_and_then_goes_on_with_what_was_left() -> None:
    deadline = Deadline.after(0.3)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        async with deadline.timeout():
            with deadline.pause():
                await asyncio.sleep(0.6)
            assert time.monotonic() - started >= 0.59
            await asyncio.sleep(LONG)
    assert 0.85 < time.monotonic() - started < LONG


async def test_pauses_may_overlap() -> None:
    deadline = Deadline.after(0.2)

    async def ask(seconds: float) -> None:
        with deadline.pause():
            await asyncio.sleep(seconds)

    async with deadline.timeout():
        await asyncio.gather(ask(0.3), ask(0.1), ask(0.5))
    assert 0 < deadline.seconds_left <= 0.2


async def test_a_timeout_that_begins_in_a_pause_begins_to_count_after_it() -> None:
    deadline = Deadline.after(LONG)
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def ask() -> None:
        with deadline.pause():
            asked.set()
            await go_on.wait()

    asking = asyncio.ensure_future(ask())
    await asked.wait()
    started = time.monotonic()
    asyncio.get_running_loop().call_later(0.2, go_on.set)
    with pytest.raises(TimeoutError):
        async with deadline.timeout(0.1):
            await asyncio.sleep(LONG)
    assert 0.25 < time.monotonic() - started
    await asking


async def test_a_timeout_that_ran_out_is_not_brought_back_by_a_pause() -> None:
    deadline = Deadline.after(0.01)
    with pytest.raises(TimeoutError):
        async with deadline.timeout():
            try:
                await asyncio.sleep(LONG)
            finally:
                with deadline.pause():
                    pass


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
