"""Backoff: when something that failed is tried again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

LONGEST_HOLD = 600.0


class Backoff:
    """Pauses that double with every failure, and never end in giving up."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        first: float = 0.5,
        longest: float = 60.0,
        free: int = 1,
        window: float | None = None,
    ) -> None:
        """Begin with *first* seconds, after *free* failures that cost no pause.

        With a *window*, failures count for so many seconds, and pauses begin anew only after as long without one;
        otherwise whatever works ends them.
        """
        self.why = ""
        """Why it failed last."""
        self._clock = clock
        self._first = first
        self._longest = longest
        self._free = free
        self._window = window
        self._failures: list[float] = []
        self._pause = 0.0
        self._until = 0.0

    @property
    def seconds_left(self) -> float:
        """How long calls are still refused; nothing when they are not."""
        return max(self._until - self._clock(), 0.0)

    def note_failure(self, why: str = "", *, is_start: bool = False) -> None:
        """Take note of a failure; that of a start costs a pause even when it is the first."""
        now = self._clock()
        self.why = why
        recent = [at for at in self._failures if self._window is None or now - at <= self._window]
        self._failures = [*recent, now][-self._free - 1 :]
        # Long pauses leave few failures within a window: only a quiet one ends them, see worked().
        if self._pause or is_start or len(self._failures) > self._free:
            self._pause = min(self._pause * 2 or self._first, self._longest)
            # Jitter keeps several servers of one machine, or several clients of one server, from coming back together.
            self._until = now + self._pause * random.uniform(0.5, 1.0)

    def hold(self, seconds: float) -> None:
        """Let nobody try for *seconds*, as far as that is a pause and not a giving up."""
        self._until = max(self._until, self._clock() + min(seconds, LONGEST_HOLD))

    def note_success(self) -> None:
        """Take note of an answered call: pauses begin anew, unless the last failure is too recent."""
        last = self._failures[-1] if self._failures else None
        if self._window is None or last is None or self._clock() - last > self._window:
            self.reset()

    def reset(self) -> None:
        """Let the next call try at once, and forget all failures."""
        self._failures, self._pause, self._until = [], 0.0, 0.0
