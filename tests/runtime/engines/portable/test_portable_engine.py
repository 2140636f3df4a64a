"""What only the portable engine can suffer: workers that die while they wait for a program."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import anyio
import pytest

from ot.runtime.engines.portable.portable_engine import PortableEngine
from run_app import running_app, value_of

pytestmark = pytest.mark.anyio


async def test_a_worker_that_is_dying_when_a_run_begins_costs_the_run_nothing(tmp_path: Path) -> None:
    engine = PortableEngine()
    async with running_app(tmp_path, engine=engine) as app:
        with anyio.fail_after(60):
            for number in range(30):
                await app.run("0")
                # A signal is delivered in its own time: some of these workers still look alive when they are taken.
                for session in engine._sessions._ready:
                    if session.worker_pid:
                        os.kill(session.worker_pid, signal.SIGKILL)
                assert str(number) == value_of(await app.run(str(number)))


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
