"""Finds the processes that a test has started, however they were detached: by a mark in their environment."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from pace import PATIENCE, Stopwatch, busy_seconds

NAME = "LC_TEST_TREE_MARK"
"""Every process may have variables that start so."""

TREE = """
import os, subprocess, sys, time
sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(300)"]
subprocess.Popen(sleeper)
subprocess.Popen(sleeper, start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sleeper[0], sleeper)
    os._exit(0)
os.wait()
print("ready", flush=True)
"""
"""A program with a child, a child in its own session, and one that was forked twice; it prints when all are there."""

GONE_SECONDS = 1.0
TREE_SIZE = 4
"""Itself and the three sleepers; its guard comes on top."""


def fresh_environ() -> dict[str, str]:
    """Return an environment whose processes can be told from all others."""
    return {"PATH": os.environ["PATH"], NAME: secrets.token_hex(16)}


def marked(environ: dict[str, str]) -> list[int]:
    """Return the living processes that were started with *environ*."""
    mark = f"{NAME}={environ[NAME]}".encode()
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if mark in content(path)]


def content(path: Path) -> bytes:
    """Return a file of /proc; nothing when its process is gone. That of a zombie is empty."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def zombies_of(parent: int) -> list[int]:
    """Return the ended children that *parent* has not reaped."""
    return [pid for pid, state in children_of(parent).items() if state == "Z"]


def children_of(parent: int) -> dict[int, str]:
    """Return the state of each child of *parent*."""
    stats = [content(path).rpartition(b")") for path in Path("/proc").glob("[0-9]*/stat")]
    fields = [(stat[0].split()[0], stat[2].split()) for stat in stats if stat[2]]
    return {int(pid): rest[0].decode() for pid, rest in fields if int(rest[1]) == parent}


def are_all_there(environ: dict[str, str]) -> bool:
    """Return whether the whole TREE and its guard have come: one that just begins another program has no mark."""
    return within(PATIENCE, lambda: len(marked(environ)) == TREE_SIZE + 1)


def are_gone_in_time(environ: dict[str, str]) -> bool:
    """Return whether nothing is left after the second that a server's death may take, and what the machine adds."""
    watch = Stopwatch()
    within(PATIENCE, lambda: not marked(environ))
    taken = watch.seconds
    return taken < GONE_SECONDS or taken < GONE_SECONDS + busy_seconds()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Return whether *holds* becomes true before *seconds* are over."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
