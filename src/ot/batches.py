"""Bounded queues of rows, each written by a thread of its own, so that adding a row never waits."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

MAX_ROWS = 10_000
MAX_AT_ONCE = 2_000
MAX_PAUSE = 30.0


class Batches[T]:
    """A bounded queue and the thread that empties it; rows that find it full are counted and dropped."""

    def __init__(self, write: Callable[[list[T]], bool], *, name: str, seconds: float, most: int = MAX_ROWS) -> None:
        """Call *write* with what came within *seconds* of the first row; what it refuses is tried again later.

        *write* runs on the thread alone, must not raise, and returns whether it took the rows.
        """
        self._write = write
        self._seconds = self._pause = seconds
        self._most = most
        self._rows: deque[T] = deque()
        self._turn = threading.Condition(threading.Lock())
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._idle = self._urgent = self._closing = False
        self._done = self.dropped = 0

    @property
    def waiting(self) -> int:
        """How many rows are not written yet."""
        return len(self._rows)

    def add(self, row: T) -> None:
        """Take *row*, to be written soon."""
        if len(self._rows) >= self._most or self._closing:
            with self._turn:
                self.dropped += 1
            return
        self._rows.append(row)
        # A thread that works looks again before it waits, so most rows need no lock.
        if self._idle or self._thread.ident is None:
            with self._turn:
                self._turn.notify_all()
                if self._thread.ident is None:
                    self._thread.start()

    def flush(self, seconds: float) -> bool:
        """Return whether all rows added so far were written, waiting for it at most *seconds*."""
        with self._turn:
            added, self._urgent = self._done + len(self._rows), True
            self._turn.notify_all()
            return self._turn.wait_for(lambda: self._done >= added, seconds)

    def close(self, seconds: float) -> None:
        """Write what is there, within *seconds*, and end the thread; what is left is dropped."""
        with self._turn:
            self._closing = True
            self._turn.notify_all()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        with self._turn:
            self.dropped += len(self._rows)
            self._rows.clear()

    def _work(self) -> None:
        while batch := self._next():
            written = self._write(batch)
            with self._turn:
                for _ in range(min(len(batch), len(self._rows)) if written else 0):
                    self._rows.popleft()
                self._done += len(batch) if written else 0
                self._pause = self._seconds if written else min(self._pause * 2, MAX_PAUSE)
                self._turn.notify_all()
                if self._closing and not written:
                    return

    def _next(self) -> list[T]:
        """Wait for rows, and a moment for more of them; nothing when the end has come."""
        with self._turn:
            self._idle = True
            self._turn.wait_for(lambda: self._rows or self._closing)
            self._idle = False
            if len(self._rows) < MAX_AT_ONCE or self._pause > self._seconds:
                self._turn.wait_for(lambda: self._urgent or self._closing, self._pause)
            self._urgent = False
            # By index: rows are added without a lock, which would break an iteration over them.
            return [self._rows[number] for number in range(min(len(self._rows), MAX_AT_ONCE))]
