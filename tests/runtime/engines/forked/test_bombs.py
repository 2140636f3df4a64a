"""Bombs inside the exact engine: processes, memory and endless loops leave other runs nearly as quick as they were."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time

import exact_attacks
import pytest
from bombs import BOMBS

from ot.config.models import Limits
from ot.errors import RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.program import parse_program

pytestmark = pytest.mark.anyio

LIMITS = Limits(cpu_seconds=2, memory_mb=128)
ROUNDS = 80
MAX_TIMES_SLOWER = 5.0
"""A bound for machines that do other things too; the goal is 2, and what was measured is on the page on engines."""
AT_LEAST_SECONDS = 0.05
"""A p95 below this is not told apart from the machine's own noise."""
ATTEMPTS = 3
"""What a busy machine adds is not there each time."""


async def p95(engine: ExactEngine) -> float:
    """Return what 95 of 100 honest runs take at most."""
    taken: list[float] = []
    for number in range(ROUNDS):
        start = time.monotonic()
        outcome = await engine.run(
            parse_program(f"sum(range({number})) + 1"), exact_attacks.NoPacks(), LIMITS, Deadline.after(30)
        )
        taken.append(time.monotonic() - start)
        assert outcome.value == sum(range(number)) + 1
        await asyncio.sleep(0.02)  # as runs come: one after the other, not back to back
    return statistics.quantiles(taken, n=20)[-1]


async def explode(engine: ExactEngine, source: str, stop: asyncio.Event) -> int:
    """Run a bomb again and again; return how often it was ended by a limit."""
    ended = 0
    while not stop.is_set():
        with pytest.raises(RunError):
            await engine.run(parse_program(source), exact_attacks.NoPacks(), LIMITS, Deadline.after(10))
        ended += 1
    return ended


async def test_bombs_leave_other_runs_nearly_as_quick_as_they_were() -> None:
    engine = ExactEngine()
    slower: list[float] = []
    try:
        await engine.start(LIMITS)
        await p95(engine)
        while len(slower) < ATTEMPTS and (not slower or min(slower) > 1):
            stop, alone = asyncio.Event(), await p95(engine)
            bombs = [asyncio.ensure_future(explode(engine, source, stop)) for source in BOMBS.values()]
            beside = await p95(engine)
            stop.set()
            assert all(await asyncio.gather(*bombs))
            sys.stdout.write(f"p95 alone {alone * 1000:.1f} ms, beside the bombs {beside * 1000:.1f} ms\n")
            slower.append(beside / max(alone * MAX_TIMES_SLOWER, AT_LEAST_SECONDS))
    finally:
        await engine.aclose()
    assert min(slower) <= 1
