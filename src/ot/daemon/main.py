"""The process of the shared server: it listens before it imports what it serves with."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ot.daemon.server_lock import ServerLock
from ot.relay.place import Place, Unshared, find_place

if TYPE_CHECKING:
    import asyncio

MAX_LOG_BYTES = 1 << 20
MAX_FDS = 1 << 16
PATH = "/usr/local/bin:/usr/bin:/bin"
USUAL_LIMITS = {"CORE": 0, "NOFILE": MAX_FDS, "STACK": 8 << 20}
"""Soft limits that are not raised to the hard ones: files of dead processes, programs that close every possible file,
and stacks that have no bound."""


def main() -> None:
    """Leave whoever started this, and serve until nobody needs it; end at once where another process serves."""
    try:
        place = find_place()
    except Unshared as error:
        sys.exit(f"onetool: {error}")
    if sys.argv[1:] != [place.socket]:
        sys.exit("onetool: this is started by onetool serve --shared")
    tell = _detach(place)
    lock = ServerLock.begin(place)
    with suppress(OSError):  # whoever waited has gone
        os.write(tell, b"ok" if lock else b"no")
    os.close(tell)
    if lock:
        _serve(lock)


def _detach(place: Place) -> int:
    """Detach from whoever started this process; return where to report that it listens."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)  # a leader of a session could be given a terminal
    os.setpgid(0, 0)  # whatever it starts is in its group, which the watchdog ends
    os.chdir("/")
    tell = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    os.closerange(3, tell)
    os.closerange(tell + 1, MAX_FDS)
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with suppress(OSError):
        fcntl.flock(log, fcntl.LOCK_SH)  # it is not removed while anything writes to it
    if os.fstat(log).st_size > MAX_LOG_BYTES:
        os.ftruncate(log, 0)
    for number in (1, 2):
        os.dup2(log, number)
    os.close(log)
    _reset_limits()
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{Path.home()}/.local/bin:{PATH}"
    os.environ["LANG"] = "C.UTF-8"
    return tell


def _reset_limits() -> None:
    """Undo what may be undone of the limits of whoever started this; what may not is part of the key."""
    names = [name.removeprefix("RLIMIT_") for name in dir(resource) if name.startswith("RLIMIT_")]
    for name in names:
        kind = getattr(resource, f"RLIMIT_{name}")
        with suppress(OSError, ValueError):
            hard = resource.getrlimit(kind)[1]
            usual = USUAL_LIMITS.get(name, hard)
            resource.setrlimit(kind, (usual if hard == resource.RLIM_INFINITY else min(usual, hard), hard))
    if sys.platform.startswith("linux"):
        with suppress(OSError):
            os.sched_setaffinity(0, range(os.cpu_count() or 1))
        with suppress(OSError):  # only a privileged process may go below what one has set
            Path("/proc/self/oom_score_adj").write_text("0")


def _serve(lock: ServerLock) -> None:
    gc.disable()  # until it serves
    try:
        from ot.daemon.serving import serve  # noqa: PLC0415 - takes seconds, in which clients can already connect

        with _runner() as runner:
            runner.run(serve(lock))
    finally:
        lock.end()
    # A tool's thread that still runs cannot be stopped, and Python would wait for it.
    os._exit(0)


def _runner() -> asyncio.Runner:
    import asyncio  # noqa: PLC0415 - as above

    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)
