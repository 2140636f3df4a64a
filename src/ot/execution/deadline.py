"""Deadline: when a run must be over, on a clock that stands still while a person is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from math import inf


class Deadline:
    """A moment that moves on with the clock while a question waits, and takes the timeouts made of it along."""

    def __init__(self, at: float) -> None:
        """Lie at *at*, on the monotonic clock."""
        self._first_at = at
        self._asked = 0.0
        self._since: float | None = None
        self._questions = 0
        self._running: dict[asyncio.Timeout, float] = {}
        """Every timeout that runs now, and what was left of it when the clock was last stopped."""

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that lies *seconds* ahead."""
        return cls(time.monotonic() + seconds)

    @property
    def at(self) -> float:
        """Where it lies now, on the monotonic clock."""
        return self._first_at + self.asked_seconds

    @property
    def asked_seconds(self) -> float:
        """How long it has stood still so far."""
        return self._asked + (time.monotonic() - self._since if self._since is not None else 0.0)

    @property
    def seconds_left(self) -> float:
        """How long it still is."""
        return self.at - time.monotonic()

    @asynccontextmanager
    async def timeout(self, at_most: float = inf) -> AsyncGenerator[None]:
        """Raise TimeoutError in the block when the deadline, or *at_most* seconds, are over on this clock."""
        seconds = max(min(at_most, self.seconds_left), 0.0)
        async with asyncio.timeout(None if self._since is not None else seconds) as running:
            self._running[running] = seconds
            try:
                yield
            finally:
                del self._running[running]

    @contextmanager
    def pause(self) -> Generator[None]:
        """Let the clock stand still inside the block; blocks may overlap."""
        self._questions += 1
        if self._questions == 1:
            self._stop()
        try:
            yield
        finally:
            self._questions -= 1
            if not self._questions:
                self._go_on()

    def _stop(self) -> None:
        self._since = time.monotonic()
        now = asyncio.get_running_loop().time()
        for running in self._running:
            if not running.expired() and (when := running.when()) is not None:
                self._running[running] = when - now
                running.reschedule(None)

    def _go_on(self) -> None:
        self._asked, self._since = self.asked_seconds, None
        now = asyncio.get_running_loop().time()
        for running, left in self._running.items():
            if not running.expired():
                running.reschedule(now + left)
