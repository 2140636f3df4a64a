"""Looks for garbage between replies, so that no reply waits for Python to look through all objects."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar

PAUSE_SECONDS, READ_SECONDS = 0.05, 0.005
NEW_OBJECTS = 700
"""How many are looked through while nobody waits: as many as Python itself would wait for."""
MANY_OBJECTS = 5_000
"""How many are looked through after a reply even if the next request is there: a client may never pause."""
PARTS_BEFORE_ALL = 10
"""How often the newer objects are looked through before all are, as Python has it."""
PARTS_WITHOUT_PAUSE = 30
"""The same for a client that never pauses."""
LEAST_RATIO = 100
"""How many times as long as looking through all objects took, the next time waits: what is there may be large."""
THRESHOLDS = 20_000, 10, 1_000
"""When Python looks by itself, within a reply: a reply that makes so many objects has what they cost.

The last is also how many parts are looked through before all are where somebody always waits.
"""


def collect_between_replies() -> None:
    """Look for garbage from now on, but never in what is there: it is large, and it stays."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()


class IdleGarbage:
    """The collector of this process, for a connection that knows when its client waits."""

    _connections: ClassVar[set[IdleGarbage]] = set()
    _last_reply: ClassVar[float] = 0.0
    _next_full: ClassVar[float] = 0.0

    def __init__(self, is_awaited: Callable[[], bool]) -> None:
        """Let the client be answered first if *is_awaited* says that it waits."""
        self._is_awaited = is_awaited
        self._due: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        """Begin with the connection."""
        self._connections.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End with the connection, which may leave requests unanswered."""
        self._connections.discard(self)
        if self._due:
            self._due.cancel()

    @classmethod
    def is_anybody_waiting(cls) -> bool:
        """Return whether a client of any connection waits for a reply."""
        return any(connection._is_awaited() for connection in cls._connections)

    def collect_soon(self) -> None:
        """After a reply: collect after a pause in which nobody waits, or now if there is much to look through."""
        IdleGarbage._last_reply = time.monotonic()
        new = gc.get_count()[0]
        if new > MANY_OBJECTS:
            self._collect(PARTS_WITHOUT_PAUSE)
        elif new > NEW_OBJECTS and self._due is None:
            self._due = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._end_pause, False)

    def _end_pause(self, has_read: bool) -> None:
        left = self._last_reply + PAUSE_SECONDS - time.monotonic()
        if left > 0 or not has_read:
            # The event loop looks at timers before it reads: a request may be there that nobody has seen.
            self._due = asyncio.get_running_loop().call_later(max(left, READ_SECONDS), self._end_pause, left <= 0)
            return
        self._due = None
        if not self.is_anybody_waiting():  # else the next reply asks again
            self._collect(PARTS_BEFORE_ALL)

    def _collect(self, parts: int) -> None:
        """Look through the newer objects; after so many *parts*, or many more if somebody waits, through all."""
        if not gc.isenabled():
            return
        began, so_far = time.monotonic(), gc.get_count()[2]
        may_wait = so_far < THRESHOLDS[2] and self.is_anybody_waiting()
        if so_far < parts or began < self._next_full or may_wait:
            gc.collect(1)
            return
        gc.collect()
        ended = time.monotonic()
        IdleGarbage._next_full = ended + LEAST_RATIO * (ended - began)
