"""What a process and all its descendants have cost: processor time, and memory that is theirs alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

TICK_NS = 10**9 // os.sysconf("SC_CLK_TCK")
CHILDREN_USER, CHILDREN_SYSTEM = 13, 14
"""Where /proc/PID/stat, after the name, says how long children took that have ended."""


def descendants(pids: Iterable[int]) -> list[int]:
    """Return *pids* and everything below them that lives."""
    found: list[int] = []
    waiting = list(pids)
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in task.read_text().split()]
            except OSError:
                continue  # it has just ended
    return found


def cpu_ns(pids: Iterable[int]) -> int:
    """Return the processor time of *pids* and their descendants, those that have ended included."""
    return sum(_own_ns(pid) + _ended_ns(pid) for pid in descendants(pids))


def _own_ns(pid: int) -> int:
    """Return the time of a process and all its threads, by the kernel's clock of that process."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError:
        return 0


def _ended_ns(pid: int) -> int:
    """Return the time of those children that have ended: the kernel adds it up exactly, and tells it in ticks."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0
    return (int(fields[CHILDREN_USER]) + int(fields[CHILDREN_SYSTEM])) * TICK_NS


def pss_bytes(pids: Iterable[int]) -> int:
    """Return the memory of *pids* and their descendants; a page that several share counts as a part for each."""
    return sum(_pss(pid) for pid in descendants(pids))


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
