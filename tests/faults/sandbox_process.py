"""Finds and strikes the processes in which programs run and templates are rendered."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from faults.watched import Watched
from pace import patiently, wait_while
from server_process import process_stat

COMPUTING_TICKS = 20
"""More than a process takes to start, and longer than a run may have lasted that is begun anew elsewhere."""
SANDBOX, RENDERER = "monty", "python"
"""The names of processes that the server starts."""


def kill_all(server: Watched, name: str) -> None:
    """Kill the server's processes of that name, and return when they are dead."""
    killed = _named(server, name)
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    wait_while(lambda: [pid for pid in killed if process_stat(pid)])


def busy_process(server: Watched) -> int:
    """Return the sandbox process that computes; a program that does must have been sent."""
    before = {pid: cpu_ticks(pid) for pid in _named(server, SANDBOX)}
    for _ in patiently():
        for pid in _named(server, SANDBOX):
            if cpu_ticks(pid) > before.setdefault(pid, 0) + COMPUTING_TICKS:
                return pid
    raise AssertionError("no process computes")


def _named(server: Watched, name: str) -> list[int]:
    """Return the server's processes of that name; others compute too, while they start."""
    found: list[int] = []
    for pid in server.wire.children():
        with contextlib.suppress(OSError):  # it has gone
            if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                found.append(pid)
    return found


def cpu_ticks(pid: int) -> int:
    """Return how long a process has computed, 0 when it has gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - read often
            return int(file.read().rpartition(b") ")[2].split()[11])
    except OSError:
        return 0
