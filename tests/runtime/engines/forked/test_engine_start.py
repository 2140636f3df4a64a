"""How the exact engine starts, and the children that it keeps ready."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from exact_attacks import NoPacks

from ot.config.models import Engines, Limits
from ot.errors import EngineCrashed, EngineUnavailable
from ot.execution.deadline import Deadline
from ot.runtime.engines.choice import EngineChoice
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.jail_command import ZygoteCommand, jail_commands, trusted_command
from ot.runtime.engines.forked.ready_children import MAX_ROOMS, PAUSE_SECONDS, ReadyChildren
from ot.runtime.engines.forked.zygote_process import ZygoteProcess
from ot.runtime.program import parse_program
from ot.workspace import Workspace
from run_app import paths_in

pytestmark = pytest.mark.anyio

START = "sys.path.remove"
PROBE_DIES = "import os, ot.runtime.engines.forked.jail.zygote as z; z.lockdown.probe = lambda: os._exit(9)\n"

Spoil = Callable[[], ZygoteProcess]


def killed_at_once() -> ZygoteProcess:
    """Return a zygote that was killed before it could say anything."""
    zygote = ZygoteProcess(partial(jail_commands), {}, jailed=True)
    os.kill(zygote._process.pid, signal.SIGKILL)
    return zygote


def with_dying_self_test() -> ZygoteProcess:
    """Return a zygote in whose jail the process of the self-test ends early."""

    def spoiled(command: ZygoteCommand) -> ZygoteCommand:
        argv = tuple(part.replace(START, PROBE_DIES + START) for part in command.argv)
        return ZygoteCommand(argv, command.namespaces, command.read_paths)

    return ZygoteProcess(lambda fd: [spoiled(command) for command in jail_commands(fd)], {}, jailed=True)


class Exact(ExactEngine):
    """An exact engine whose first zygotes are spoiled."""

    def __init__(self, spoil: Spoil, times: int) -> None:
        super().__init__(ready=0, cgroup=False)
        self.starts = 0
        good = self._children._start

        def start() -> ZygoteProcess:
            self.starts += 1
            return spoil() if self.starts <= times else good()

        self._children._start = start


WAYS = pytest.mark.parametrize("spoil", [killed_at_once, with_dying_self_test])
CAUSES = {
    killed_at_once: "killed by SIGKILL while it started",
    with_dying_self_test: "the process of the self-test died",
}


@WAYS
@pytest.mark.parametrize("times", [1, 2])
async def test_a_start_that_was_killed_is_tried_again_in_the_same_strong_way(spoil: Spoil, times: int) -> None:
    engine = Exact(spoil, times)
    choice = EngineChoice(Engines(), lambda: engine)
    try:
        assert (await choice.choose()).name == "exact"
        assert engine.starts == times + 1
        assert engine.locked is not None
        assert engine.locked.notes == ()
        health = await choice.health()
        assert (health.status, choice.news.since(0)) == ("ok", "")
    finally:
        await choice.aclose()


@WAYS
async def test_after_three_failures_the_engine_is_degraded_with_the_true_cause_and_tried_again(spoil: Spoil) -> None:
    engines = [Exact(spoil, 3), Exact(spoil, 3), Exact(spoil, 0)]
    choice = EngineChoice(Engines(), lambda: engines.pop(0))
    try:
        assert (await choice.choose()).name == "portable"
        health = await choice.health()
        assert health.status == "degraded"
        assert CAUSES[spoil] in health.details["exact_engine"]
        assert "CONFIG_SECCOMP" not in health.details["exact_engine"]
        assert CAUSES[spoil] in choice.news.since(0)
        assert choice.news.since(1) == ""
        await choice.try_again()
        assert (choice.name, CAUSES[spoil] in choice.news.since(1)) == ("portable", True)
        await choice.try_again()
        assert (choice.name, (await choice.health()).status) == ("exact", "ok")
        assert "exact engine again" in choice.news.since(2)
        assert choice.news.since(0) == ""  # who comes now never knew of the other
        outcome = await choice.run(parse_program("1 + 1"), NoPacks(), Limits(), Deadline.after(60))
        assert outcome.value == 2
    finally:
        await choice.aclose()


@WAYS
async def test_where_the_exact_engine_is_demanded_three_failures_are_a_refusal(spoil: Spoil) -> None:
    choice = EngineChoice(Engines(use="exact"), lambda: Exact(spoil, 3))
    try:
        with pytest.raises(EngineUnavailable, match=CAUSES[spoil]):
            await choice.choose()
    finally:
        await choice.aclose()


async def test_a_run_for_which_no_zygote_could_be_started_says_that_nothing_ran_and_what_to_do() -> None:
    engine = Exact(killed_at_once, 100)
    try:
        with pytest.raises(EngineCrashed, match="nothing of the program has run, run it again") as caught:
            await engine.run(parse_program("1"), NoPacks(), Limits(), Deadline.after(60))
        assert "killed by SIGKILL" in str(caught.value)
    finally:
        await engine.aclose()


async def test_the_first_reply_says_that_the_engine_fell_back_and_a_reload_tries_it_again(tmp_path: Path) -> None:
    engines = [Exact(killed_at_once, 3), Exact(killed_at_once, 0)]
    app = Workspace.alone(paths_in(tmp_path), engine=EngineChoice(Engines(), lambda: engines.pop(0)))
    try:
        told = [(await app.run("1")).texts for _ in range(2)]
        assert CAUSES[killed_at_once] in told[0][-1]
        assert told[1] == ("1",)
        await app.reload()
        reply = await app.run("(n for n in [2]).__next__()")
        assert (reply.texts[0], app.engine.name) == ("2", "exact")
    finally:
        await app.aclose()


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


async def test_a_child_needed_just_as_forking_pauses_is_still_forked() -> None:
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
