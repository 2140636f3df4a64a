"""What the test server's packs have seen: which calls came in, with what, and how many at a time."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

from ot.workspace import Workspace

CANARY = "canary-host-7f3a"
MAX_DEPTH = 200
VALUES = (type(None), bool, int, float, str, bytes, Decimal, datetime, date, time, timedelta, timezone)
PLAIN = frozenset({*VALUES, list, tuple, dict, set, frozenset})


class Watch:
    """Counts calls; safe under threads, because synchronous tools run in some."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.app: Workspace | None = None
        self.alive = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was seen, but not the calls that are still going on."""
        with self._lock:
            self.dispatched: Counter[str] = Counter()
            self.calls = 0
            self.max_in_flight = self.alive
            self.max_depth = 0
            self.arg_not_plain: list[str] = []
            self.arg_too_deep = False
            self.max_gap = 0.0

    def seen(self) -> dict[str, Any]:
        """Return it as plain data."""
        with self._lock:
            return {
                "dispatched": dict(self.dispatched),
                "calls": self.calls,
                "inflight": self.max_in_flight,
                "alive": self.alive,
                "depth": self.max_depth,
                "arg_not_plain": self.arg_not_plain[:10],
                "arg_too_deep": self.arg_too_deep,
                "stall_ms": self.max_gap * 1000,
            }

    @contextmanager
    def call(self, tool: str, *arguments: object) -> Generator[None]:
        """Note that *tool* has been reached with *arguments*, and when it is left."""
        with self._lock:
            self.dispatched[tool] += 1
            self.alive += 1
            self.max_in_flight = max(self.max_in_flight, self.alive)
            self._inspect(arguments)
        try:
            yield
        finally:
            with self._lock:
                self.alive -= 1

    def _inspect(self, value: object) -> None:
        """Look at every part of the arguments, without recursion and without asking any of them for a method."""
        todo: list[tuple[Any, int]] = [(value, 0)]
        for _ in range(200_000):
            if not todo:
                return
            part, depth = todo.pop()
            if type(part) not in PLAIN:
                self.arg_not_plain.append(type(part).__name__)
            elif depth > MAX_DEPTH:
                self.arg_too_deep = True
            elif type(part) is dict:
                todo += [(item, depth + 1) for pair in part.items() for item in pair]
            elif type(part) in (datetime, time):
                todo.append((part.tzinfo, depth + 1))
            elif type(part) in (list, tuple, set, frozenset):
                todo += [(item, depth + 1) for item in part]


# A pack is a module, and its functions are found by name: there is nowhere else to hand this in.
WATCH = Watch()
