"""Plays servers that are killed at any moment, and prints as JSON what each of them left behind.

python dying_server.py {started|starting} TIMES: servers with a whole tree of processes, or while they start it.
A server is a fork of this process: importing anew for each would take most of the time.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path

from process_marks import TREE, fresh_environ, marked, within

from ot.processes.guarded_process import GuardedProcess
from pace import Stopwatch

SPAWN_SECONDS = 0.06
PATIENCE = 5.0
WHOLE_TREE = 5


async def serve(environ: dict[str, str], ready: int) -> None:
    """Start the tree, say so, and live on."""
    argv = [sys.executable, "-I", "-S", "-c", TREE + "time.sleep(300)"]
    process = await GuardedProcess.start(argv, env=environ, cwd=Path("/"))
    os.write(ready, await process.stdout.readline())
    await process.wait()


def fork_server(environ: dict[str, str]) -> tuple[int, int]:
    """Return the pid of a server, and where it says that its tree is there."""
    told, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        asyncio.run(serve(environ, ready))
        os._exit(1)
    os.close(ready)
    return pid, told


def kill_one(delay: float | None) -> dict[str, float | int]:
    """Kill one server when its tree is there, or after *delay*, and return what was and is left, and for how long."""
    environ = fresh_environ()
    pid, told = fork_server(environ)
    if delay is None:
        os.read(told, 100)
        # A process that was forked and not executed yet has no mark.
        within(PATIENCE, lambda: len(marked(environ)) >= WHOLE_TREE)
    else:
        time.sleep(delay)
    os.close(told)
    before = len(marked(environ))
    os.kill(pid, signal.SIGKILL)
    killed = Stopwatch()
    os.waitpid(pid, 0)
    within(PATIENCE, lambda: not marked(environ))
    seconds = killed.seconds
    # A guard that was forked and not executed yet had no mark: it may come only now, and must go as well.
    if delay is not None and within(0.2, lambda: bool(marked(environ))):
        within(PATIENCE, lambda: not marked(environ))
        seconds = killed.seconds
    return {"before": before, "left": len(marked(environ)), "seconds": seconds}


def main(when: str, times: int) -> None:
    """Kill *times* servers."""
    delays = [None if when == "started" else SPAWN_SECONDS * turn / times for turn in range(times)]
    sys.stdout.write(json.dumps([kill_one(delay) for delay in delays]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
