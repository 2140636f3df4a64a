"""Children that wait for runs, and runs that wait for children."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from ot.errors import EngineCrashed
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.jail_command import trusted_command
from ot.runtime.engines.forked.ready_children import MAX_ROOMS, PAUSE_SECONDS, ReadyChildren
from ot.runtime.engines.forked.zygote_process import ZygoteProcess

pytestmark = pytest.mark.anyio

ROOM = Room(64 << 20, 5)
SECONDS = 20.0


@asynccontextmanager
async def children_of(ready: int) -> AsyncGenerator[ReadyChildren]:
    def start() -> ZygoteProcess:
        return ZygoteProcess(lambda fd: [trusted_command(fd)], {}, jailed=False)

    children = ReadyChildren(start, lambda found: None, processes=16, ready=ready, queue_seconds=SECONDS)
    try:
        await children.open()
        await children.prepare(ROOM)
        yield children
    finally:
        await children.aclose()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - what it waits for is a number, no event
            await asyncio.sleep(0.01)


async def test_runs_that_find_none_ready_get_one_each() -> None:
    async with children_of(ready=0) as children, AsyncExitStack() as stack:
        places = [children.child(ROOM, time.monotonic() + SECONDS) for _ in range(9)]
        got = await asyncio.gather(*(stack.enter_async_context(place) for place in places))
        assert len({child.pid for child in got}) == 9
        assert children.running == 9


async def test_a_run_that_gives_up_waiting_harms_no_other() -> None:
    async with children_of(ready=0) as children:

        async def use() -> int:
            async with children.child(ROOM, time.monotonic() + SECONDS) as child:
                return child.pid

        leaving, staying = asyncio.ensure_future(use()), asyncio.ensure_future(use())
        await asyncio.sleep(0)
        leaving.cancel()
        assert await asyncio.wait_for(staying, SECONDS) > 0
        await until(lambda: children.running == 0)


async def test_while_runs_follow_each_other_those_that_are_ready_serve_them() -> None:
    async with children_of(ready=2) as children:
        await until(lambda: children.waiting == 2)
        async with children.child(ROOM, time.monotonic() + SECONDS):
            pass
        assert children.waiting == 1  # nothing was forked at once
        await until(lambda: children.waiting == 2)


async def test_children_wait_for_runs_of_other_limits_too_when_those_take_turns() -> None:
    other = Room(32 << 20, 5)
    async with children_of(ready=1) as children:
        await children.prepare(other)
        await until(lambda: children.waiting == 2)
        waiting = {room: ready[0].pid for room, ready in children._ready.items()}
        for room in (ROOM, other):
            async with children.child(room, time.monotonic() + SECONDS) as child:
                assert child.pid == waiting[room]  # the other's turn has cost it nothing
        await until(lambda: children.waiting == 2)


async def test_only_the_rooms_that_were_used_last_keep_children() -> None:
    async with children_of(ready=1) as children:
        for size in range(1, MAX_ROOMS + 1):
            await children.prepare(Room((64 + size) << 20, 5))
        await until(lambda: children.waiting == MAX_ROOMS)
        assert ROOM not in children._ready


async def test_a_child_missed_at_the_moment_in_which_forking_pauses_comes_all_the_same() -> None:
    async with children_of(ready=2) as children:
        await until(lambda: children.waiting == 2)
        assert children._zygote is not None
        children._zygote.on_warm = lambda: None  # which would fill up too
        children._ready[ROOM].popleft().kill()
        children._taken = time.monotonic() - PAUSE_SECONDS
        children._fill_later()  # its task has not begun
        children._taken = time.monotonic()  # a run follows, so it begins by pausing
        (filling,) = children._fillers
        await asyncio.wait({filling}, timeout=SECONDS)
        children._fillers.add(filling)  # it is done, and what counts it is not yet told
        children._fill_later()
        children._on_filled(filling)
        await until(lambda: children.waiting == 2)


async def test_a_run_that_waits_when_the_engine_is_closed_is_told() -> None:
    async with children_of(ready=0) as children:
        waiting = asyncio.ensure_future(children.child(ROOM, time.monotonic() + SECONDS).__aenter__())
        await asyncio.sleep(0)
        await children.aclose()
        with pytest.raises(EngineCrashed):
            await asyncio.wait_for(waiting, SECONDS)


async def test_a_zygote_that_reads_nothing_for_a_while_is_waited_for_and_not_taken_for_dead() -> None:
    async with children_of(ready=0) as children:
        zygote = children._zygote
        assert zygote is not None
        os.kill(zygote._process.pid, signal.SIGSTOP)
        with pytest.raises(BlockingIOError):
            while True:
                zygote._control.send(json.dumps({"how": 0}).encode())
        forked = asyncio.ensure_future(children.fork_apart(ROOM))
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        zygote._tell_how(1, told.set_result)
        await asyncio.sleep(0)
        assert not forked.done()
        assert not told.done()
        os.kill(zygote._process.pid, signal.SIGCONT)
        async with asyncio.timeout(SECONDS):
            child = await forked
            assert "it ended" == await told
        child.kill()
        assert children._zygote is zygote
        assert zygote.alive
