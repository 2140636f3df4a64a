"""A child that dies, by any means and at any moment, ends its run at once with the right cause."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import chain
from typing import Any

import psutil
import pytest
import scarce_memory

from no_files import NoFiles
from ot.cli.terminal.event_loop import new_runner
from ot.config.models import Limits
from ot.errors import EngineCrashed, RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import StillbornRun
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.forked.forked_run import AnswerTurns, ForkedRun
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.jail_command import trusted_command
from ot.runtime.engines.forked.ready_children import ReadyChildren
from ot.runtime.engines.forked.trusted import TrustedEngine
from ot.runtime.engines.forked.zygote_process import ZygoteProcess
from ot.runtime.program import parse_program
from server_process import process_stat

LOOPS = pytest.mark.parametrize("runner_of", [asyncio.Runner, new_runner], ids=["asyncio", "uvloop"])
ROOM = Room(64 << 20, 60)
LIMITS = Limits(run_seconds=60, cpu_seconds=60)
SECONDS = 20.0
"""Far less than a run may take: who waits for the clock fails."""


class Calls(NoFiles):
    """A pack ``t`` whose one tool tells that it was called, and never answers."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.times = 0

    async def call(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], **places: object) -> Any:
        """Wait for ever."""
        self.times += 1
        self.called.set()
        await asyncio.Event().wait()


def run_of(program: str, reach: Calls | None = None) -> ForkedRun:
    return ForkedRun(parse_program(program), reach or Calls(), LIMITS, Deadline.after(60), AnswerTurns())


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - what it waits for is no event
            await asyncio.sleep(0.001)


@asynccontextmanager
async def children_of(ready: int = 0) -> AsyncGenerator[ReadyChildren]:
    def start() -> ZygoteProcess:
        return ZygoteProcess(lambda fd: [trusted_command(fd)], {}, jailed=False)

    children = ReadyChildren(start, lambda found: None, processes=16, ready=ready, queue_seconds=SECONDS)
    try:
        await children.open()
        await children.prepare(ROOM)
        yield children
    finally:
        await children.aclose()


@LOOPS
@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "not noticed yet"])
def test_a_child_that_is_dead_when_the_run_begins_has_run_nothing(
    runner_of: Callable[[], asyncio.Runner], noticed: bool
) -> None:
    async def main() -> None:
        async with children_of() as children:
            child = await children.fork_apart(ROOM)
            os.kill(child.pid, signal.SIGKILL)
            if noticed:
                await until(lambda: child.gone)
            while process_stat(child.pid):
                assert noticed or not child.gone  # no turn of the event loop
            async with asyncio.timeout(SECONDS):
                with pytest.raises(StillbornRun):
                    await run_of("1").drive(child)

    with runner_of() as runner:
        runner.run(main())


@LOOPS
def test_a_child_that_dies_without_having_read_its_program_has_run_nothing(
    runner_of: Callable[[], asyncio.Runner],
) -> None:
    async def main() -> None:
        async with children_of() as children:
            child = await children.fork_apart(ROOM)
            os.kill(child.pid, signal.SIGSTOP)
            running = asyncio.ensure_future(run_of("1").drive(child))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            os.kill(child.pid, signal.SIGKILL)
            async with asyncio.timeout(SECONDS):
                with pytest.raises(StillbornRun):
                    await running

    with runner_of() as runner:
        runner.run(main())


HOLDS_THE_WIRE = """
import os, time
if os.fork() == 0:
    time.sleep(60)
t.wait()
"""
CAUSES = {
    "a signal": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
    "its own exit": ("import os\nos._exit(3)", "it ended with exit code 3"),
    "no wire": ("import os, time\nos.close(3)\ntime.sleep(60)", "it closed its connection"),
}


@pytest.mark.parametrize(("program", "cause"), CAUSES.values(), ids=CAUSES)
def test_a_run_whose_child_ends_names_the_cause(program: str, cause: str) -> None:
    async def main() -> None:
        async with children_of() as children:
            with pytest.raises(EngineCrashed, match=cause):
                await asyncio.wait_for(run_of(program).drive(await children.fork_apart(ROOM)), SECONDS)

    with new_runner() as runner:
        runner.run(main())


@pytest.mark.parametrize("program", ["t.wait()", HOLDS_THE_WIRE], ids=["alone", "another holds its wire"])
def test_a_run_whose_child_is_killed_at_work_says_by_what(program: str) -> None:
    async def main() -> None:
        async with children_of() as children:
            calls = Calls()
            child = await children.fork_apart(ROOM)
            running = asyncio.ensure_future(run_of(program, calls).drive(child))
            await asyncio.wait_for(calls.called.wait(), SECONDS)
            below = psutil.Process(child.pid).children()
            os.kill(child.pid, signal.SIGKILL)
            with pytest.raises(EngineCrashed, match="it ended" if below else "killed by SIGKILL"):
                await asyncio.wait_for(running, SECONDS)
            for process in below:
                process.kill()

    with new_runner() as runner:
        runner.run(main())


def test_a_child_that_dies_while_nothing_is_taken_from_it_ends_its_run() -> None:
    async def main() -> None:
        async with children_of() as children:
            calls = Calls()
            child = await children.fork_apart(ROOM)
            running = asyncio.ensure_future(run_of("t.wait()", calls).drive(child))
            await asyncio.wait_for(calls.called.wait(), SECONDS)
            child.pause(True)
            os.kill(child.pid, signal.SIGKILL)
            with pytest.raises(EngineCrashed, match="killed by SIGKILL"):
                await asyncio.wait_for(running, SECONDS)

    with new_runner() as runner:
        runner.run(main())


def test_a_run_whose_zygote_is_killed_says_so() -> None:
    async def main() -> None:
        async with children_of() as children:
            calls = Calls()
            child = await children.fork_apart(ROOM)
            running = asyncio.ensure_future(run_of("t.wait()", calls).drive(child))
            await asyncio.wait_for(calls.called.wait(), SECONDS)
            psutil.Process(child.pid).parent().kill()  # pyright: ignore[reportOptionalMemberAccess] - it lives
            with pytest.raises(EngineCrashed, match="its zygote died"):
                await asyncio.wait_for(running, SECONDS)

    with new_runner() as runner:
        runner.run(main())


@pytest.mark.parametrize("engine_of", [ExactEngine, partial(TrustedEngine, os.environ)], ids=["exact", "trusted"])
def test_ready_children_that_are_killed_cost_no_run(engine_of: Callable[..., ExactEngine | TrustedEngine]) -> None:
    async def main() -> None:
        engine = engine_of(ready=3)
        try:
            await engine.start(LIMITS)
            for number in range(6):
                for child in chain(*engine._children._ready.values()):
                    os.kill(child.pid, signal.SIGKILL)
                running = engine.run(parse_program(str(number)), Calls(), LIMITS, Deadline.after(60))
                assert (await asyncio.wait_for(running, SECONDS)).value == number
        finally:
            await engine.aclose()

    with new_runner() as runner:
        runner.run(main())


def test_an_idle_session_that_is_killed_is_lost_and_nothing_runs() -> None:
    async def main() -> None:
        engine = TrustedEngine(os.environ, ready=0)
        try:
            session = await engine.open_session()
            await session.run(parse_program("x = 1"), Calls(), LIMITS, Deadline.after(60))
            assert session._child is not None
            os.kill(session._child.pid, signal.SIGKILL)
            while process_stat(session._child.pid):
                assert not session._child.gone
            assert session.lost
            with pytest.raises(RunError):
                await asyncio.wait_for(session.run(parse_program("2"), Calls(), LIMITS, Deadline.after(60)), SECONDS)
        finally:
            await engine.aclose()

    with new_runner() as runner:
        runner.run(main())


def test_a_value_for_which_the_server_has_no_memory_is_a_memory_error() -> None:
    run = subprocess.run([sys.executable, scarce_memory.__file__], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    *short, last = json.loads(run.stdout)
    assert [text.partition(":")[0] for text in short] == ["MemoryError"] * 3
    assert last == "2"
