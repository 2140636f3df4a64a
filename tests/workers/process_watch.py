"""Waiting for processes to be gone, without sleeping."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pace import wait_while, within
from server_process import process_stat, process_tree

GONE_SECONDS = 1.0


def assert_gone(pids: Iterable[int], seconds: float = GONE_SECONDS) -> None:
    """Return once none of *pids* is left; it takes at most *seconds*, and what a busy machine adds."""
    watched = tuple(pids)
    with within(seconds):
        wait_while(lambda: [(pid, command(pid)) for pid in watched if process_stat(pid)])


def command(pid: int) -> str:
    """Return a process's command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:300]
    except OSError:
        return ""


def below_this() -> set[int]:
    """Return the processes that this one has started."""
    return {stat.pid for stat in process_tree(os.getpid())} - {os.getpid()}
