"""Ten thousand runs on each engine: no process, descriptor or memory more than after the first thousand."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from faults.watched import Place, start_wire
from mcp_wire import WireServer
from pace import PATIENCE

logger = logging.getLogger(__name__)

GATHER = "await asyncio.gather(*[brave.search(query='a') for _ in range(3)])"
PROGRAMS = (
    ("{n} + 1", "{n1}"),
    ("print({n})\nbrave.search(query='{n}')[0]['title'].split()[0]", "{n}"),
    (f"import asyncio\n[len(found) > 0 for found in {GATHER}]", "[true,true,true]"),
    ("1 / 0", "ZeroDivisionError"),
    ("'{n} ' * 40000", "handle"),
)  # fmt: skip
"""A value, prints and a call, gathered calls, an error, and a result that is stored: what *n* makes of each."""
FEW, MANY = 1_000, 10_000
GROWTH_MB = 24


def held(wire: WireServer) -> tuple[Counter[str], int, float]:
    """Return the processes by name, their descriptors and their memory in MB, shared pages counted once."""
    names, files, memory = Counter[str](), 0, 0.0
    for process in (psutil.Process(wire.pid), *psutil.Process(wire.pid).children(recursive=True)):
        names[process.name()] += 1
        files += process.num_fds()
        memory += process.memory_full_info().pss / (1 << 20)
    return names, files, memory


def settled(wire: WireServer) -> tuple[Counter[str], int, float]:
    """Return what is held when it has stopped changing."""
    end = time.monotonic() + PATIENCE
    before = None
    while time.monotonic() < end:
        try:
            now = held(wire)
        except psutil.NoSuchProcess:
            continue
        if before and now[:2] == before[:2]:
            return now
        before = now
    raise TimeoutError(f"processes and files still change: {before}")


@pytest.fixture(params=["exact", "portable", "trusted"])
def wire(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WireServer]:
    """A server with one engine."""
    with start_wire(Place.make(tmp_path, f"engines: {{use: {request.param}}}\n")) as wire:
        yield wire


def run_all(wire: WireServer, numbers: range) -> None:
    """Run the programs in turn, and hold each reply to its own number."""
    for n in numbers:
        program, expected = PROGRAMS[n % len(PROGRAMS)]
        text = wire.run(program.replace("{n}", str(n))).text
        assert expected.replace("{n1}", str(n + 1)).replace("{n}", str(n)) in text
        wire.lines.clear()


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_ten_thousand_runs_grow_nothing(wire: WireServer) -> None:
    run_all(wire, range(FEW))
    processes, files, memory = settled(wire)
    run_all(wire, range(FEW, MANY))
    processes_now, files_now, memory_now = settled(wire)
    logger.info("first %s, %d descriptors, %.1f MB", dict(processes), files, memory)
    logger.info("then %s, %d descriptors, %.1f MB", dict(processes_now), files_now, memory_now)
    assert processes_now.total() <= processes.total() + 1
    assert files_now <= files + 4
    assert memory_now <= memory + GROWTH_MB
