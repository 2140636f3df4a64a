"""The process of the shared server: it listens before it imports what it serves with."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

from ot.daemon.life import Life
from ot.relay.place import Unshared, find_place

TELL = 3
"""The descriptor on which whoever started this waits to hear that it listens."""
MAX_LOG_BYTES = 1 << 20


def main() -> None:
    """Serve until nobody has needed it for a while, unless another process already serves."""
    try:
        place = find_place()
    except Unshared as error:
        sys.exit(f"onetool: {error}")
    if sys.argv[1:] != [place.socket]:
        sys.exit("onetool: this is started by onetool serve --shared")
    _shorten_log()
    life = Life.begun(place)
    with suppress(OSError):  # whoever waited has gone
        os.write(TELL, b"ok" if life else b"no")
    os.close(TELL)
    if life is None:
        return
    try:
        from ot.daemon.serving import serve  # noqa: PLC0415 - takes seconds, in which clients can already connect

        with _runner() as runner:
            runner.run(serve(life))
    finally:
        life.end()
    # A tool's thread that still runs cannot be stopped, and Python would wait for it.
    os._exit(0)


def _runner() -> asyncio.Runner:
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def _shorten_log() -> None:
    with suppress(OSError):
        if os.fstat(2).st_size > MAX_LOG_BYTES:
            os.ftruncate(2, 0)
