"""Turns: how many calls may run at once, and who is next."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

Start = Callable[[], object]


class Turns:
    """Starts calls as soon as fewer than *limit* run, in the order in which they came."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: deque[Start] = deque()
        self._lock = threading.Lock()

    def take(self, start: Start) -> None:
        """Start now, or when it is this call's turn; whoever was started calls ``give_back()`` once."""
        with self._lock:
            if self._free <= 0:
                self._waiting.append(start)
                return
            self._free -= 1
        start()

    def give_back(self) -> None:
        """Let the next one start."""
        with self._lock:
            if not self._waiting:
                self._free += 1
                return
            start = self._waiting.popleft()
        start()
