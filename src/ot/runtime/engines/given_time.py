"""GivenTime: the clock and the seed that a program is given in place of the machine's, so that it can be replayed."""

from __future__ import annotations

from collections.abc import Awaitable
from contextvars import ContextVar
from typing import Any

TICK = 1000
"""How far each reading moves the clock, in nanoseconds: two readings are never the same."""
AT = b'{"at":'
calling_task: ContextVar[int] = ContextVar("ot_calling_task", default=0)
"""Which of the program's tasks makes a call, by a number of the engine's own."""


async def call_as_task[Value](task: int, call: Awaitable[Value]) -> Value:
    """Return the value of a *call* that has not begun, which the program's *task* makes."""
    calling_task.set(task)
    return await call


class GivenTime:
    """A clock that moves by what a program's calls and sleeps take, and stands still while the program computes."""

    def __init__(self, start: int, seed: int, skips: bool = False) -> None:
        """Begin at *start*, in nanoseconds since 1970; where it *skips*, a program that sleeps goes on at once."""
        self.start, self.seed, self.skips = start, seed, skips
        self.passed = 0
        """Nanoseconds since the start."""
        self.alone: set[int] = set()
        """The awaited calls beside which no other was awaited, by the engine's numbers, where it has no tasks."""

    def read(self) -> int:
        """Return the time, in nanoseconds since 1970."""
        self.passed += TICK
        return self.start + self.passed

    def move_to(self, passed: int) -> None:
        """Let the time be at least *passed* nanoseconds after the start."""
        self.passed = max(self.passed, passed)

    def answer(self, function: str, tz: Any = None) -> Any:
        """Return the result of a function that asks for the time."""
        from datetime import UTC, datetime  # noqa: PLC0415 - in the jail it is loaded when there is time

        seconds = self.read() / 1e9
        now = datetime.fromtimestamp(seconds, tz or UTC)
        if function == "time.time":
            return seconds
        return now.date() if function == "date.today" else now if tz else now.replace(tzinfo=None)

    def stamp(self, answer: bytes) -> bytes:
        """Return an answer to the program with the time in it."""
        return b"%s%d,%s" % (AT, self.passed, answer[1:])

    def take_stamp(self, answer: bytes) -> None:
        """Move on to the time in *answer*."""
        if answer.startswith(AT):
            self.move_to(int(answer[len(AT) : answer.index(b",")]))
