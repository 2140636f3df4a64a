"""What only the portable engine can suffer: workers that die while they wait for a program."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.runtime.engines.portable.portable_run import STILLBORN_SECONDS
from ot.runtime.engines.portable.ready_sessions import ReadySessions
from run_app import running_app, value_of
from workers.process_watch import assert_gone, below_this

pytestmark = pytest.mark.anyio


async def test_a_worker_that_is_dying_when_a_run_begins_costs_the_run_nothing(tmp_path: Path) -> None:
    engine = PortableEngine()
    free = 0
    async with running_app(tmp_path, engine=engine) as app:
        with anyio.fail_after(60):
            for number in range(30):
                await app.run("0")
                # A signal is delivered in its own time: some of these workers still look alive when they are taken.
                for session in engine._sessions._ready:
                    if session.worker_pid:
                        os.kill(session.worker_pid, signal.SIGKILL)
                reply = await app.run(str(number))
                # On a busy machine a worker may live on for so long that the program could have worked in it.
                if reply.cause != "EngineCrashed" or reply.meta["ms"] < STILLBORN_SECONDS * 1000:
                    assert str(number) == value_of(reply)
                    free += 1
    assert free >= 10


async def test_two_tools_whose_names_could_be_put_together_alike_are_kept_apart(tmp_path: Path) -> None:
    packs = {"a": "def b__c() -> str: return 'a.b__c'", "a__b": "def c() -> str: return 'a__b.c'"}
    async with running_app(tmp_path, packs) as app:
        assert value_of(await app.run("f=a.b__c; g=a__b.c; [f(), g()]")) == '["a.b__c","a__b.c"]'
        assert value_of(await app.run("a.b__c")) == "<tool a.b__c>"


async def test_a_named_tuple_is_a_list_in_the_result_as_it_is_in_the_exact_engine(tmp_path: Path) -> None:
    made = "from collections import namedtuple\nP = namedtuple('P', 'x y')\n"
    async with running_app(tmp_path) as app:
        assert value_of(await app.run(made + "P(1, 2)")) == "[1,2]"
        assert value_of(await app.run(made + "{'k': [P(1, P(2, 3))]}")) == '{"k":[[1,[2,3]]]}'


async def test_an_engine_that_is_closed_reaps_the_workers_that_its_pool_only_killed(tmp_path: Path) -> None:
    engine = PortableEngine()
    async with running_app(tmp_path, engine=engine) as app:
        await app.run("0")
        forgotten = os.posix_spawn(sys.executable, [sys.executable, "-c", "input()"], {})  # noqa: ASYNC221 - at once
        engine._sessions._know(forgotten)
        os.kill(forgotten, signal.SIGKILL)
    with pytest.raises(ChildProcessError):
        os.waitpid(forgotten, os.WNOHANG)  # noqa: ASYNC222 - it does not wait


@pytest.fixture
def without_collection() -> Generator[None]:
    """Keep Python from finding lost objects, which would end their processes some time later."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collection")
@pytest.mark.parametrize("turns", range(4), ids=["at once", "a turn later", "two turns later", "three turns later"])
@pytest.mark.parametrize("is_started", [False, True], ids=["with the pool", "with a session"])
async def test_a_run_that_is_given_up_while_its_process_starts_leaves_none(is_started: bool, turns: int) -> None:
    before, sessions = below_this(), ReadySessions(processes=4, queue_seconds=5)
    if is_started:
        await sessions.prepare({})
    given_up = [asyncio.ensure_future(sessions.session({}, time.monotonic() + 30).__aenter__()) for _ in range(4)]
    for _ in range(turns):
        await asyncio.sleep(0)
    for task in given_up:
        task.cancel()
    ended = await asyncio.gather(*given_up, return_exceptions=True)
    assert any(isinstance(one, asyncio.CancelledError) for one in ended)
    await sessions.aclose()
    assert_gone(below_this() - before)
