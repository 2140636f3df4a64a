"""ServerBackoff: when a server that failed is tried again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 60.0


class ServerBackoff:
    """Pauses that double with every failure, and never end in giving up."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        first: float = FIRST_SECONDS,
        longest: float = LONGEST_SECONDS,
    ) -> None:
        """Begin with *first* seconds."""
        self._clock = clock
        self._first = first
        self._longest = longest
        self._pause = 0.0
        self._until = 0.0

    @property
    def seconds_left(self) -> float:
        """How long calls are still refused."""
        return max(self._until - self._clock(), 0.0)

    def failed(self) -> None:
        """Take note of a failure; the first after something worked costs no pause."""
        # Jitter keeps several servers of one machine, or several clients of one server, from coming back together.
        self._until = self._clock() + self._pause * random.uniform(0.5, 1.0)
        self._pause = min(max(self._pause * 2, self._first), self._longest)

    def refused(self) -> None:
        """Take note of a start that failed: even the first costs a pause."""
        self._pause = max(self._pause, self._first)
        self.failed()

    def worked(self) -> None:
        """Take note of an answered call: pauses begin anew."""
        self._pause = 0.0
        self._until = 0.0
