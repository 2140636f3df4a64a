"""Looks for garbage while nobody waits for a reply, so that hardly ever a reply waits for that."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Collection

PAUSE_SECONDS, READ_SECONDS = 0.05, 0.005
NEW_OBJECTS = 700
"""As many as Python itself would wait for; Python is told to wait for more, for a server that is never idle."""
PARTS_BEFORE_ALL = 10
"""How often the newer objects are looked through before all are, as Python has it."""
LEAST_RATIO = 100
"""How many times as long as looking through all objects took, the next time waits: what is there may be large."""


class IdleGarbage:
    """The collector of this process, for those who know when they are idle."""

    def __init__(self) -> None:
        """Wait until it is called."""
        self._due: asyncio.TimerHandle | None = None
        self._next_full = 0.0

    def collect_soon(self, waiting: Collection[object]) -> None:
        """Collect in a moment if there is something to look through and nobody is *waiting* then."""
        if self._due is None and gc.get_count()[0] > NEW_OBJECTS:
            self._due = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._read_first, waiting)

    def _read_first(self, waiting: Collection[object]) -> None:
        # The event loop looks at timers before it reads: a request may be there that nobody has seen.
        self._due = asyncio.get_running_loop().call_later(READ_SECONDS, self._collect, waiting)

    def _collect(self, waiting: Collection[object]) -> None:
        self._due = None
        if waiting or not gc.isenabled():
            return  # the next reply asks again
        began = time.monotonic()
        if gc.get_count()[2] < PARTS_BEFORE_ALL or began < self._next_full:
            gc.collect(1)
            return
        gc.collect()
        ended = time.monotonic()
        self._next_full = ended + LEAST_RATIO * (ended - began)
