"""What tests say about time, so that it holds on any machine.

A bound in seconds tells as much about the machine as about the code. A test therefore waits for an event, and gives up
only after ``PATIENCE``; or it compares what it measures with a control that the same machine ran at the same time.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 30.0
"""Seconds after which a test gives up waiting for what comes in milliseconds; nothing that it proves depends on it."""
TURNS = 3
"""What a busy machine adds is not there each time; what the code takes is."""
LOOK_SECONDS = 0.005
"""The rest between two looks; without it the test takes the processor from what it waits for."""
STEPS = 100_000
STARTS = 10
TICKS_PER_SECOND = 100
COMPUTED_SECONDS = 0.1


@dataclass
class Effort:
    """What a block computed, once it has ended."""

    loops: float = 0.0
    """How many plain loops of 100,000 steps take as much of the processor's time; 400 or so take a second."""


@contextmanager
def effort() -> Generator[Effort]:
    """Yield what tells how much this process computed in the block, beside loops just before and just after it."""
    found, before, started = Effort(), _loop_seconds(), time.process_time()
    yield found
    seconds = time.process_time() - started
    found.loops = seconds / max(before, _loop_seconds())


async def times_as_long(act: Callable[[], Awaitable[object]], control: Callable[[], Awaitable[object]]) -> float:
    """Return how many times as long as *control* *act* takes: the best of a few turns, each with its own control."""
    return min([await _seconds(act) / await _seconds(control) for _ in range(TURNS)])


def patiently(seconds: float = PATIENCE) -> Generator[None]:
    """Yield until *seconds* are over, with a rest after each look."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(LOOK_SECONDS)


def wait_while(problem: Callable[[], object]) -> None:
    """Return once *problem* returns nothing any more; fail with what it says when patience is over."""
    for _ in patiently():
        if not problem():
            return
    found = problem()
    assert not found, found


class Stopwatch:
    """Counts seconds from when it is made, but for those in which the host of a virtual machine had a processor."""

    def __init__(self) -> None:
        self._began, self._stolen = time.monotonic(), _stolen_seconds()

    @property
    def seconds(self) -> float:
        """How long it has been, less what was stolen: nothing ran in that time, whatever the code does."""
        return time.monotonic() - self._began - (_stolen_seconds() - self._stolen)


def busy_seconds() -> float:
    """Return how long the machine takes at present to start ten processes and see them end: little when it is quiet."""
    started = time.perf_counter()
    for _ in range(STARTS):
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
    return time.perf_counter() - started


def times_as_slow() -> float:
    """Return how many times as long computing takes now as on a machine that does nothing else."""
    started, before = time.perf_counter(), time.thread_time()
    while (computed := time.thread_time() - before) < COMPUTED_SECONDS:
        pass
    return (time.perf_counter() - started) / computed


@contextmanager
def within(seconds: float) -> Generator[None]:
    """Fail when the block takes longer than *seconds*, and than the machine at present adds to that."""
    watch = Stopwatch()
    yield
    taken = watch.seconds
    assert taken < seconds or taken < seconds + busy_seconds(), f"it took {taken:.2f} s"


def _stolen_seconds() -> float:
    """Return for how long the host has had that one of the processors of which it took most."""
    try:
        cores = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")][1:]
    except OSError:  # a system that does not tell
        return 0.0
    return max(int(core[8]) for core in cores) / TICKS_PER_SECOND


def _loop_seconds() -> float:
    started = time.process_time()
    for _ in range(STEPS):
        pass
    return time.process_time() - started


async def _seconds(act: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await act()
    return time.perf_counter() - started
