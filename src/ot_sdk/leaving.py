"""How a worker ends: at once, whatever its tools are doing."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

OK = 0
START_FAILED = 3
WIRE_LOST = 4
"""Something closed the worker's connection: without it no call can be answered."""

PATIENCE = 0.3
"""Seconds for what was written to standard error: nobody may be reading it."""


def leave(code: int) -> NoReturn:
    """End the process, without waiting for threads, tasks or exit handlers of the pack."""
    with suppress(RuntimeError):  # the system gives no more threads
        flusher = threading.Thread(target=_flush, daemon=True)
        flusher.start()
        flusher.join(PATIENCE)
    os._exit(code)


def _flush() -> None:
    for stream in (sys.__stdout__, sys.stderr):
        with suppress(Exception):  # closed, or replaced by the pack with something of its own
            stream.flush()  # pyright: ignore[reportOptionalMemberAccess] - a pack may have set it to None, hence the suppress
