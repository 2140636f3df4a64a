"""What a worker does when it is rung for twice, killed or asked to end, and when what it works with goes away."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pace import PATIENCE
from state.redis_process import running_redis
from team.background.counter_service import program
from team.background.worker_bed import ANN, WorkerBed, worker_bed

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180)]

LONG = """
for n in range(600):
    counter.look(run="long")
"""
RECOVERY = 2 * PATIENCE
"""Seconds in which another worker has taken a run over."""


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncGenerator[WorkerBed]:
    with running_redis() as redis:
        async with worker_bed(tmp_path, redis) as bed:
            yield bed


async def test_of_a_run_that_two_workers_are_rung_for_one_start_goes_on(bed: WorkerBed) -> None:
    for _ in range(8):
        await bed.ask()
        await bed.bell.submit("")
    await bed.all_ended(RECOVERY)
    assert await bed.check() == {"done": 8}
    assert {(await bed.status(id)).starts for id in bed.asked} == {1}


async def test_a_run_that_kills_its_worker_each_time_is_stopped_after_three_starts(bed: WorkerBed) -> None:
    bed.workers.pop().close()
    id = await bed.ask(LONG)
    for start in (1, 2, 3):
        await bed.started(id, start)
        await asyncio.to_thread(bed.kill_one)
    end = (await bed.ended(id, RECOVERY)).end
    assert end
    assert end.state == "stopped"
    assert "it was started 3 times" in end.texts[0]
    # The worker is there for others.
    good = await bed.ask()
    assert (await bed.ended(good, RECOVERY)).state == "done"


async def test_the_database_is_killed_and_redis_is_emptied_and_nothing_is_doubled_lost_or_stuck(bed: WorkerBed) -> None:
    for _ in range(12):
        await bed.ask()
    await bed.started(next(iter(bed.asked)))
    for _ in range(3):
        bed.postgres.kill()
        bed.redis.kill()  # and what it held is gone
        await asyncio.sleep(0.3)  # long enough for calls to meet it
        await asyncio.to_thread(bed.postgres.start)
        bed.redis.start()
        await asyncio.sleep(0.7)
    await bed.all_ended(RECOVERY)
    counted = bed.counter.counted()
    assert max(counted.values()) == 1
    # A program may end by itself, since a write that cannot be recorded is not sent.
    assert {(await bed.status(id)).state for id in bed.asked} <= {"done", "failed", "stopped"}


async def test_a_run_that_is_cancelled_ends_wherever_it_is(bed: WorkerBed) -> None:
    id = await bed.ask(LONG)
    await bed.started(id)
    await bed.book.cancel(ANN, id)
    assert (await bed.ended(id, RECOVERY)).state == "cancelled"


async def test_a_worker_that_is_asked_to_end_lets_its_runs_end_and_takes_no_more(tmp_path: Path) -> None:
    with running_redis() as redis:
        async with worker_bed(tmp_path, redis, workers=1, at_once=1, more="limits: {drain_seconds: 60}") as bed:
            first = await bed.ask(f"counter.hold()\n{program('r0')}")
            await bed.started(first)
            second = await bed.ask()
            bed.workers[0].signal(signal.SIGTERM)
            bed.counter.open_gate()  # not before: else it could have ended already, and the second begun
            assert await asyncio.to_thread(bed.workers[0].process.wait, PATIENCE) == 0
            assert (await bed.status(first)).state == "done"
            assert (await bed.status(second)).state == "waiting"
            await asyncio.to_thread(bed.start_worker)
            assert (await bed.ended(second, RECOVERY)).state == "done"
            await bed.check()


async def test_what_a_worker_cannot_finish_before_it_ends_is_taken_up_by_another(tmp_path: Path) -> None:
    with running_redis() as redis:
        async with worker_bed(tmp_path, redis, workers=1, more="limits: {drain_seconds: 0.1}") as bed:
            id = await bed.ask(LONG)
            await bed.started(id)
            bed.workers[0].signal(signal.SIGTERM)
            assert await asyncio.to_thread(bed.workers[0].process.wait, PATIENCE) == 0
            assert (await bed.status(id)).state == "running"
            await asyncio.to_thread(bed.start_worker)
            assert (await bed.started(id, 2)).state == "running"
            await bed.book.cancel(ANN, id)
            assert (await bed.ended(id, RECOVERY)).state == "cancelled"
