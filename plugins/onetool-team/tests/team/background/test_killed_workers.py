"""Workers are killed and frozen at random moments: no write is doubled, and no run is lost in silence."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest

from pace import PATIENCE
from state.redis_process import running_redis
from team.background.worker_bed import WorkerBed, worker_bed

pytestmark = pytest.mark.anyio

PAUSES = (0.05, 0.7)
LEAST_OPEN = 24
"""Runs that are under way or wait while workers are killed: every kill meets some."""
MANY_OPEN = 150
"""The same for long: what a killed worker held waits until its lease is over, and one a second keeps dozens waiting."""
FREEZES = (1.0, 8.0)
"""Seconds: some are longer than a worker may be silent, some are not."""
END_SECONDS = 4 * PATIENCE


async def keep_busy(bed: WorkerBed, runs: int, least_open: int, over: asyncio.Event) -> None:
    """Ask for that many runs at least, and until it is *over*, so that some have not ended at any time."""
    is_open: set[str] = set()
    while len(bed.asked) < runs or not over.is_set():
        is_open = {id for id in is_open if not (await bed.status(id)).end}
        is_open |= {await bed.ask() for _ in range(least_open - len(is_open))}
        await asyncio.sleep(0.1)


async def disturbed(bed: WorkerBed, kills: int, freezes: int, runs: int, least_open: int = LEAST_OPEN) -> Counter[str]:
    """Return how that many runs ended while workers were killed and frozen."""
    over = asyncio.Event()
    asking = asyncio.ensure_future(keep_busy(bed, runs, least_open, over))
    freezing: list[asyncio.Future[None]] = []
    for action in random.sample(["kill"] * kills + ["freeze"] * freezes, kills + freezes):
        await asyncio.sleep(random.uniform(*PAUSES))
        if action == "kill":
            await asyncio.to_thread(bed.kill_one)
        else:
            freezing.append(asyncio.ensure_future(bed.freeze_one(random.uniform(*FREEZES))))
    await asyncio.gather(*freezing)
    over.set()
    await asking
    await bed.all_ended(END_SECONDS)
    return await bed.check()


@pytest.mark.timeout(240)
async def test_forty_kills_double_no_write_and_lose_no_run(tmp_path: Path) -> None:
    with running_redis() as redis:
        async with worker_bed(tmp_path, redis) as bed:
            ends = await disturbed(bed, kills=40, freezes=0, runs=60)
    assert bed.kills == 40
    assert ends["stopped"] > 0, "no kill has met a run"
    assert ends.total() >= 60


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_five_hundred_kills_and_a_hundred_freezes_double_no_write_and_lose_no_run(tmp_path: Path) -> None:
    with running_redis() as redis:
        # About one is frozen at any time, and two are being started.
        async with worker_bed(tmp_path, redis, workers=4) as bed:
            ends = await disturbed(bed, kills=500, freezes=100, runs=2000, least_open=MANY_OPEN)
    assert (bed.kills, bed.freezes) == (500, 100)
    assert ends.total() >= 2000
    assert ends["stopped"] > 100, ends
