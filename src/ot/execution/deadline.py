"""Deadline: when a run must be over, on a clock that stands still while a person is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
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
        self._running: set[DeadlineTimer] = set()

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
        return self._asked if self._since is None else self._asked + time.monotonic() - self._since

    @property
    def seconds_left(self) -> float:
        """How long it still is."""
        return self.at - time.monotonic()

    def start_timer(self, seconds: float, over: Callable[[], None]) -> DeadlineTimer:
        """Call *over* when *seconds* are over on this clock; the timer can be cancelled."""
        timer = DeadlineTimer(seconds, over, self._running)
        if self._since is None:
            timer.go_on(asyncio.get_running_loop())
        return timer

    @asynccontextmanager
    async def timeout(self, at_most: float = inf) -> AsyncGenerator[None]:
        """Raise TimeoutError in the block when the deadline, or *at_most* seconds, are over on this clock."""
        async with asyncio.timeout(None) as running:
            timer = self.start_timer(max(min(at_most, self.seconds_left), 0.0), lambda: running.reschedule(0.0))
            try:
                yield
            finally:
                timer.cancel()

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
        loop = asyncio.get_running_loop()
        for timer in self._running:
            timer.stop(loop)

    def _go_on(self) -> None:
        self._asked, self._since = self.asked_seconds, None
        loop = asyncio.get_running_loop()
        for timer in self._running:
            timer.go_on(loop)


class DeadlineTimer:
    """One timer on a deadline's clock."""

    __slots__ = ("_handle", "_left", "_over", "_running")

    def __init__(self, seconds: float, over: Callable[[], None], running: set[DeadlineTimer]) -> None:
        self._left, self._over, self._running = seconds, over, running
        self._handle: asyncio.TimerHandle | None = None
        running.add(self)

    def go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count what is left."""
        self._handle = loop.call_later(self._left, self._end)

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Stand still."""
        if self._handle is not None:
            self._left = self._handle.when() - loop.time()
            self._handle.cancel()
            self._handle = None

    def cancel(self) -> None:
        """Never end."""
        self._running.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _end(self) -> None:
        self._running.discard(self)
        self._over()
