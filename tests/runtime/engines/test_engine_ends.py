"""What every engine promises when it ends, or its processes do; each test has an engine of its own."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import anyio
import psutil
import pytest
from engine_bench import ENGINES, Bench

from ot.errors import EngineCrashed
from pace import PATIENCE

pytestmark = pytest.mark.anyio


@pytest.fixture(params=ENGINES)
async def bench(request: pytest.FixtureRequest) -> AsyncGenerator[Bench]:
    engine = ENGINES[request.param]()
    try:
        yield Bench(engine)
    finally:
        await engine.aclose()


async def test_a_process_that_dies_ends_its_run_alone(bench: Bench) -> None:
    await bench.run("1")
    task = asyncio.create_task(bench.error("t.mark()\nt.wait()\n1"))
    with anyio.fail_after(PATIENCE):
        await bench.started.wait()
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # it went with its parent
                process.kill()
        bench.release.set()
        assert isinstance(await task, EngineCrashed)
    assert bench.alive == 0
    for number in range(5):
        assert (await bench.run(str(number))).value == number


async def test_nothing_is_left_when_an_engine_is_closed(bench: Bench) -> None:
    await bench.run("1")
    children = psutil.Process().children(recursive=True)
    assert children
    await bench.engine.aclose()
    gone, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert (len(gone), alive) == (len(children), [])
