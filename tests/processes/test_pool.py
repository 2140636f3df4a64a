"""Pools of processes, the pauses before new starts, and which processes count as clients."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator

import pytest

from ot.errors import ToolBusy
from ot.processes import peer
from ot.processes.backoff import Backoff
from ot.processes.peer import ProcessFacts
from ot.processes.pool import Leased, Pool
from ot.workers.pool import crash_backoff

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


async def test_a_pause_ends_with_a_new_holder_and_is_forgotten_without_one(pool: Things) -> None:
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


async def test_closing_the_pool_ends_all_its_processes(pool: Things) -> None:
    things = pool.add("one", "one", "two")
    await pool.aclose()
    assert [thing.ends for thing in things] == [1, 1, 1]


PARENTS = {
    10: ("onetool", 11), 11: ("uv", 12), 12: ("node", 13), 13: ("systemd", 1),
    20: ("onetool", 13),
    30: ("onetool", 31), 31: ("init", 13),
}  # fmt: skip
"""A client's server behind a launcher, a service or one whose client has just died, and one below an init."""


def test_a_client_is_who_started_a_server_and_not_who_takes_in_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(pid: int) -> ProcessFacts:
        name, parent = PARENTS[pid]
        return ProcessFacts(pid, name, parent, pid, pid, 0, -1, 0)

    monkeypatch.setattr(ProcessFacts, "read", read)
    monkeypatch.setattr(peer, "_serving_processes", lambda: [10, 20, 30])
    monkeypatch.setattr(peer.os, "getpid", lambda: 20)
    assert {11, 12} == peer._processes_of_clients()
    monkeypatch.setitem(PARENTS, 13, ("a-session-manager", 1))
    monkeypatch.setattr(peer, "_serving_processes", lambda: [10])
    assert {11, 12, 13} == peer._processes_of_clients()
    monkeypatch.setattr(sys, "argv", [f"/x{peer.SHARED}", "socket"])  # this process is the shared server
    assert {11, 12} == peer._processes_of_clients()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_loss_costs_no_pause_and_later_ones_double_up_to_the_longest() -> None:
    clock = Clock()
    backoff = Backoff(clock, first=1.0, longest=8.0)
    backoff.note_failure()
    assert backoff.seconds_left == 0
    for longest in (1, 2, 4, 8, 8, 8):
        backoff.note_failure()
        assert longest / 2 <= backoff.seconds_left <= longest
        clock.now += longest
        assert backoff.seconds_left == 0


def test_a_start_that_failed_costs_a_pause_at_once() -> None:
    backoff = Backoff(Clock(), first=1.0)
    backoff.note_failure(is_start=True)
    assert 0.5 <= backoff.seconds_left <= 1.0


def test_a_pause_that_was_asked_for_is_kept_up_to_ten_minutes() -> None:
    backoff = Backoff(Clock(), first=1.0)
    backoff.note_failure(is_start=True)
    backoff.hold(30)
    assert backoff.seconds_left == 30
    backoff.hold(5)
    assert backoff.seconds_left == 30
    backoff.hold(1e9)
    assert backoff.seconds_left == 600
    backoff.note_success()
    assert backoff.seconds_left == 0


def test_what_worked_ends_the_pauses() -> None:
    backoff = Backoff(Clock(), first=1.0)
    backoff.note_failure(is_start=True)
    backoff.note_failure(is_start=True)
    backoff.note_success()
    assert backoff.seconds_left == 0
    backoff.note_failure()
    assert backoff.seconds_left == 0


def test_pauses_of_workers_double_up_to_half_a_minute_and_start_small_again_after_a_quiet_minute() -> None:
    now = [0.0]
    backoff = crash_backoff(lambda: now[0])
    longest: list[float] = []
    for _ in range(200):
        backoff.note_failure("killed")
        longest.append(backoff.seconds_left)
        now[0] += backoff.seconds_left
    assert [0.0] * 4 == longest[:4]
    assert 0.05 <= longest[4] <= 0.1
    assert all(15 <= pause <= 30 for pause in longest[20:])
    now[0] += 61
    backoff.note_success()
    for _ in range(5):
        backoff.note_failure("killed")
    assert backoff.seconds_left <= 0.1


def test_a_success_soon_after_deaths_does_not_shorten_the_pauses() -> None:
    now = [0.0]
    backoff = crash_backoff(lambda: now[0])
    for _ in range(6):
        backoff.note_failure("killed")
    backoff.note_success()
    assert 0.1 <= backoff.seconds_left <= 0.2
    backoff.reset()
    assert backoff.seconds_left == 0
    backoff.note_failure("killed")
    assert backoff.seconds_left == 0
