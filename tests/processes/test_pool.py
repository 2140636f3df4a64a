"""A pool ends what is idle or no longer held, never under a call, and forgives who is asked for again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from ot.errors import ToolBusy
from ot.processes.backoff import Backoff
from ot.processes.pool import Leased, Pool

pytestmark = pytest.mark.anyio


class Thing(Leased):
    """A process that only counts how often it was ended."""

    def __init__(self, key: str, places: int = 1, most: int = 2) -> None:
        super().__init__(key, 60.0, places, most)
        self.ends = 0

    async def end(self) -> None:
        self.closing = True
        self.ends += 1


class Things(Pool[Thing]):
    """A pool that is given its processes."""

    def add(self, *keys: str) -> list[Thing]:
        things = [Thing(key) for key in keys]
        for thing in things:
            self._add(thing)
        return things

    def keys(self) -> set[str]:
        return {thing.key for thing in self._all()}


@pytest.fixture
async def pool() -> AsyncGenerator[Things]:
    made = Things(Backoff)
    yield made
    await made.aclose()


async def test_a_process_is_ended_when_its_last_holder_lets_it_go(pool: Things) -> None:
    one, two = pool.add("one", "two")
    pool.hold("here", ["one", "two"])
    pool.hold("there", ["one"])
    pool.hold("here", [])
    assert pool.keys() == {"one"}
    await pool._settle()
    assert (one.ends, two.ends) == (0, 1)
    pool.hold("there", ["other"])
    await pool._settle()
    assert (one.ends, pool.keys()) == (1, set())


async def test_a_process_that_is_let_go_takes_no_more_calls_and_ends_after_those_under_way(pool: Things) -> None:
    (one,) = pool.add("one")
    async with one.lease("t", "it"):
        pool.hold("here", ["other"])
        await asyncio.sleep(0)
        assert (one.closing, one.ends) == (True, 0)
    await pool._settle()
    assert one.ends == 1


async def test_an_idle_process_is_ended_and_one_with_a_call_is_not(pool: Things) -> None:
    one, two = pool.add("one", "two")
    async with two.lease("t", "it"):
        for thing in (one, two):
            thing.last_used -= 61
        pool.reap_idle()
        await pool._settle()
        assert (one.ends, two.ends, pool.keys()) == (1, 0, {"two"})
    pool.reap_idle()
    assert pool.keys() == {"two"}, "its last call ended just now"


async def test_who_is_held_again_may_be_tried_at_once_and_what_nobody_holds_is_forgotten(pool: Things) -> None:
    pool._backoff("one").note_failure(is_start=True)
    pool._backoff("two").note_failure(is_start=True)
    pool.hold("here", ["one"])
    assert pool._backoff("one").seconds_left == 0
    assert set(pool._backoffs) == {"one"}


async def test_calls_wait_for_a_place_and_too_many_are_refused() -> None:
    thing = Thing("one", places=1, most=2)
    async with thing.lease("t", "it"):
        waiting = asyncio.ensure_future(thing.lease("t", "it").__aenter__())
        await asyncio.sleep(0)
        assert (waiting.done(), thing.in_flight) == (False, 2)
        with pytest.raises(ToolBusy, match="2 calls are waiting for it"):
            async with thing.lease("t", "it"):
                pass
        waiting.cancel()
    await asyncio.sleep(0)
    assert thing.in_flight == 0


async def test_the_end_of_the_pool_is_the_end_of_all(pool: Things) -> None:
    things = pool.add("one", "one", "two")
    await pool.aclose()
    assert [thing.ends for thing in things] == [1, 1, 1]
