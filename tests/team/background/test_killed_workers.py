"""Workers are killed and frozen at random moments: no write is doubled, and no run is lost in silence."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from pace import PATIENCE
from state.redis_process import running_redis
from team.background.worker_bed import WorkerBed, worker_bed

pytestmark = pytest.mark.anyio

KILLS, PAUSES = 40, (0.05, 0.9)
LEAST_OPEN = 8
"""Runs that are under way or wait while workers are killed: every kill meets some."""
END_SECONDS = 4 * PATIENCE


async def keep_busy(bed: WorkerBed, least: int) -> None:
    """Ask for runs, so that there are always some that have not ended."""
    while True:
        missing = least - len([id for id in list(bed.asked)[-4 * least :] if not (await bed.status(id)).end])
        for _ in range(missing):
            await bed.ask()
        await asyncio.sleep(0.05)


@pytest.mark.timeout(180)
async def test_forty_kills_double_no_write_and_lose_no_run(tmp_path: Path) -> None:
    with running_redis() as redis:
        async with worker_bed(tmp_path, redis) as bed:
            asking = asyncio.ensure_future(keep_busy(bed, LEAST_OPEN))
            for _ in range(KILLS):
                await asyncio.sleep(random.uniform(*PAUSES))
                await asyncio.to_thread(bed.kill_one)
            asking.cancel()
            async with asyncio.timeout(END_SECONDS):
                while await bed.open_runs():
                    await asyncio.sleep(0.1)
            ends = await bed.check()
    print(f"{bed.kills} kills, {len(bed.asked)} runs: {dict(ends)}")
    assert ends["done"] > 0
    assert ends["stopped"] > 0, "no kill has met a run"
