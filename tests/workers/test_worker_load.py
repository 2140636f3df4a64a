"""Many calls, many deaths: no wrong reply, and nothing grows."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from statistics import median

import anyio
import pytest

from ot.errors import ToolBusy, WorkerDied
from ot.processes.guarded_process import GuardedProcess
from ot.workers.pool import DEATHS
from processes.process_marks import children_of, zombies_of
from workers.corpus_faults import Fault, fault
from workers.door import Door, extension, open_files
from workers.process_watch import below_this

pytestmark = pytest.mark.anyio

CALLERS = 64
MOST_RATIO = 3
"""How much longer the answer to a call on a dying worker may take than to notice any process's death."""

ECHO = '''
import os
import time


def echo(*, nonce: str) -> str:
    """Return what was given, and say a lot beside it."""
    if nonce.endswith("7"):
        print("noise", nonce)
    if nonce.endswith("99"):
        os.write(1, b'{"jsonrpc":"2.0","id":"1","result":{"value":"SPOOFED"}}\\n')
    return nonce


def hold(*, began: str) -> None:
    """Be in the middle of a call, and let a file say so."""
    with open(began, "x"):
        time.sleep(30)
'''


async def wrong_replies(directory: Path, calls: int) -> list[object]:
    """Return what *calls* calls of 64 callers answered, where it was not their own."""
    door = Door(directory, [extension("crowd", ECHO)])
    wrong: list[object] = []

    async def caller(name: int) -> None:
        for number in range(calls // CALLERS):
            value = await door("crowd.echo", nonce=f"{name}-{number}")
            if value != f"{name}-{number}":
                wrong.append(value)

    try:
        await door("crowd.echo", nonce="first")
        await asyncio.gather(*map(caller, range(CALLERS)))
    finally:
        await door.aclose()
    return wrong


@fault("W37", repetitions=1)
@pytest.mark.timeout(300)
async def test_sixty_four_thousand_calls_of_sixty_four_callers_get_their_own_answers(
    tmp_path: Path, fault: Fault
) -> None:
    assert [] == await wrong_replies(tmp_path, 64_000)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_a_million_calls_of_sixty_four_callers_get_their_own_answers(tmp_path: Path) -> None:
    assert [] == await wrong_replies(tmp_path, 1_000_000)


async def killed(door: Door, began: Path) -> float:
    """Kill a worker in the middle of a call, and return how long the answer took."""
    await door("crowd.echo", nonce="alive")
    call = asyncio.create_task(door("crowd.hold", began=str(began)))
    # A call that the worker has not read would go to the next worker.
    await anyio.to_thread.run_sync(wait_for_file, began)
    os.kill(door.pid("crowd"), 9)
    begun = time.monotonic()
    with pytest.raises(WorkerDied, match="SIGKILL"):
        await call
    return time.monotonic() - begun


def wait_for_file(path: Path) -> None:
    """Return once *path* is there, and take it away."""
    while not path.exists():
        time.sleep(0.001)
    path.unlink()


async def control(directory: Path) -> float:
    """Kill a process that nobody calls, and return how long it took to notice."""
    process = await GuardedProcess.start(["sleep", "30"], env=dict(os.environ), cwd=directory)
    os.kill(process.pid, 9)
    begun = time.monotonic()
    await process.wait()
    return time.monotonic() - begun


async def deaths(directory: Path, number: int) -> None:
    """Let a worker die *number* times in a call: each is answered soon, and nothing is left."""
    door = Door(directory, [extension("crowd", ECHO)])
    try:
        began = directory / "began"
        await killed(door, began)
        await door("crowd.echo", nonce="alive")
        await asyncio.to_thread(int)  # the thread that looks after spooled replies comes when it is first needed
        before = open_files(), threading.active_count(), len(below_this())
        children_before = children_of(os.getpid())
        answers: list[float] = []
        controls: list[float] = []
        for each in range(number):
            answers.append(await killed(door, began))
            if each % 4 == 0:
                controls.append(await control(directory))
        await door("crowd.echo", nonce="alive")
        await door.pool._settle()
        assert before == (open_files(), threading.active_count(), len(below_this()))
        assert {*zombies_of(os.getpid())} <= {*children_before}
        assert 1 == len(list((directory / "spool").iterdir()))
        assert median(answers) <= MOST_RATIO * median(controls)
        assert max(answers) <= max(controls) + 1
    finally:
        await door.aclose()


@fault("W01", "W03", repetitions=1)
async def test_a_hundred_deaths_in_calls_are_answered_soon_and_leave_nothing(tmp_path: Path, fault: Fault) -> None:
    await deaths(tmp_path, 100)


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_thousand_deaths_in_calls_are_answered_soon_and_leave_nothing(tmp_path: Path) -> None:
    await deaths(tmp_path, 1000)


@fault("W03")
async def test_too_many_deaths_close_the_pack_for_a_while_and_then_one_call_is_tried(
    tmp_path: Path, fault: Fault
) -> None:
    now = [0.0]
    door = Door(tmp_path, deaths=DEATHS, clock=lambda: time.monotonic() + now[0])
    try:
        for _ in range(5):
            with pytest.raises(WorkerDied):
                await door("faulty.kill")
        with pytest.raises(ToolBusy, match=r"died too often.*SIGKILL"):
            await door("faulty.echo", nonce="x")
        assert "refused" in door.pool.states()["faulty"]
        assert "x" == await door("calm.echo", nonce="x")
        now[0] = 0.1
        assert "x" == await door("faulty.echo", nonce="x")
        with pytest.raises(WorkerDied):
            await door("faulty.kill")
        with pytest.raises(ToolBusy):
            await door("faulty.echo", nonce="x")
        door.pool.hold("test", (spec.key for spec in door.specs.values()))
        with anyio.fail_after(10):
            assert "a reload opens it" == await door("faulty.echo", nonce="a reload opens it")
    finally:
        await door.aclose()
