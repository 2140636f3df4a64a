"""Tools that take their time and leave a trace of every moment that they are alive."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

pack = "slow"

__all__ = ["beat", "block", "meet", "spin", "wait"]

STEP = 0.02
MET: set[str] = set()


async def wait(seconds: float, nonce: str = "") -> str:
    """Wait without a trace, then return the nonce."""
    await asyncio.sleep(seconds)
    return nonce


async def meet(many: int, nonce: str) -> str:
    """Return the nonce once so many callers wait here at the same time."""
    MET.add(nonce)
    while len(MET) < many:  # noqa: ASYNC110 - an event would have to be made anew for every meeting
        await asyncio.sleep(STEP)
    return nonce


async def beat(file: str, seconds: float = 60.0) -> str:
    """Append the time to *file* every moment until the time is over or the call is cancelled."""
    for _ in range(int(seconds / STEP)):
        _leave_trace(Path(file))
        await asyncio.sleep(STEP)
    return "ended"


def _leave_trace(file: Path) -> None:
    with file.open("a") as trace:
        trace.write(f"{time.monotonic()}\n")


def block(seconds: float, nonce: str = "") -> str:
    """Hold a thread, then return the nonce."""
    time.sleep(seconds)
    return nonce


def spin(seconds: float) -> str:
    """Compute in a thread, holding the interpreter as Python code does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
    return "ended"
