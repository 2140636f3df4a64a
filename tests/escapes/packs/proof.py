"""Does on purpose, in the server, what no program may: shows that the harness would see it."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time

from escapes.packs._watch import WATCH

pack = "proof"
__all__ = ["hog", "spawn", "stall", "threads"]


async def stall(s: float) -> str:
    """Hold the event loop for *s* seconds."""
    with WATCH.call("proof.stall", s):
        time.sleep(s)  # noqa: ASYNC251 - that is the point
        return "stalled"


async def hog(mb: int) -> int:
    """Hold *mb* MiB of the server's memory for a moment."""
    with WATCH.call("proof.hog", mb):
        held = bytearray(mb << 20)
        held[::4096] = b"x" * len(held[::4096])
        await asyncio.sleep(0.2)
        return len(held)


def spawn(count: int) -> int:
    """Start *count* processes for a moment."""
    with WATCH.call("proof.spawn", count):
        started = [subprocess.Popen(["sleep", "5"]) for _ in range(count)]
        time.sleep(0.2)
        for process in started:
            process.kill()
            process.wait()
        return count


def threads(count: int) -> int:
    """Start *count* threads for a moment."""
    with WATCH.call("proof.threads", count):
        done = threading.Event()
        for _ in range(count):
            threading.Thread(target=done.wait, daemon=True).start()
        time.sleep(0.2)
        done.set()
        return count
