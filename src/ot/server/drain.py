"""Drain: how the runs end that are open when the server is asked to end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from fastmcp.tools import ToolResult

CUT_OFF_SECONDS = 2.0
"""How long the replies of runs that were cut off may take."""
ENDING = "ServerEnding: the server is shutting down and starts nothing new; nothing has run. Reconnect and try again"
CUT_OFF = (
    "ServerEnding: the server was asked to end{at_once}, and the run was not over{after}. "
    "It was stopped; calls of tools that had returned by then have taken effect, and ot.effects() lists those of which "
    "nobody knows"
)

is_let_in: ContextVar[bool] = ContextVar("is_let_in", default=False)
"""Whether an edge let the request in before the end began."""


class Drain:
    """The runs that are open when the server is asked to end have a while to do so, and no others begin."""

    def __init__(self, seconds: Callable[[], float] = lambda: 0.0) -> None:
        """Give open runs *seconds*, asked for when it begins."""
        self._seconds = seconds
        self._open: set[asyncio.Task[object]] = set()
        self._over = self._at_once = False
        self.begun, self._ended = asyncio.Event(), asyncio.Event()
        self._let_in = 0

    def begin(self, *, at_once: bool = False) -> float:
        """Let no run begin any more, and return how long open ones may take: nothing if it is to be *at_once*."""
        self.begun.set()
        self._at_once = at_once
        return 0.0 if at_once else self._seconds()

    @contextmanager
    def enter(self) -> Generator[None]:
        """Let a request in: its run may begin after the end has begun; an edge that refuses others asks by itself."""
        token = is_let_in.set(True)
        self._let_in += 1
        try:
            yield
        finally:
            self._let_in -= 1
            is_let_in.reset(token)
            self._ended.set()

    def cut_off(self) -> None:
        """Stop the runs that are open: their replies say why."""
        self._over = True
        for task in self._open:
            task.cancel()

    async def all_over(self, seconds: float) -> bool:
        """Return whether all runs that are open have ended within *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._open or self._let_in:
                    self._ended.clear()
                    await self._ended.wait()
        return not (self._open or self._let_in)

    async def answer[T](self, run: Callable[[], Awaitable[T]], *, goes_on: bool = False) -> T | ToolResult:
        """Return the result of *run*, or say that the server is ending; a run that *goes_on* had started before."""
        task = asyncio.current_task()
        assert task is not None
        if self.begun.is_set() and not (goes_on or is_let_in.get()):
            return _ending(ENDING, begun=False)
        if self._over:
            return self._was_cut_off()
        self._open.add(task)
        try:
            return await run()
        except asyncio.CancelledError:
            if not self._over:
                raise
            task.uncancel()
            return self._was_cut_off()
        finally:
            self._open.discard(task)
            self._ended.set()

    def _was_cut_off(self) -> ToolResult:
        at_once = " at once" if self._at_once else ""
        after = "" if self._at_once else f" after limits.drain_seconds ({self._seconds():g} s)"
        return _ending(CUT_OFF.format(at_once=at_once, after=after), begun=True)


def _ending(text: str, *, begun: bool) -> ToolResult:
    return ToolResult(content=text, meta={"onetool": {"error": "ServerEnding", "begun": begun}}, is_error=True)
