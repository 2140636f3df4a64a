"""Drain: the runs that are open when the server is asked to end have a while to do so, and no others begin."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from fastmcp.tools import ToolResult

ENDING = "ServerEnding: the server is ending and starts nothing new; nothing has run. Connect again and repeat it"
CUT_OFF = (
    "ServerEnding: the server was asked to end, and the run was not over after limits.drain_seconds ({seconds:g} s). "
    "It was stopped; calls of tools that it had made by then have taken effect"
)


class Drain:
    """Knows the runs that are open, and whether another may begin."""

    def __init__(self, seconds: Callable[[], float] = lambda: 0.0) -> None:
        """Give open runs *seconds*, asked for when it begins."""
        self._seconds = seconds
        self._open: set[asyncio.Task[object]] = set()
        self._begun = self._over = False

    def begin(self) -> float:
        """Let no run begin any more, and return how long open ones may take."""
        self._begun = True
        return self._seconds()

    def cut_off(self) -> None:
        """Stop the runs that are open: their replies say why."""
        self._over = True
        for task in self._open:
            task.cancel()

    async def answer(self, run: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """Return what *run* returns, or that the server is ending."""
        task = asyncio.current_task()
        assert task is not None
        if self._begun:
            return _ending(ENDING)
        self._open.add(task)
        try:
            return await run()
        except asyncio.CancelledError:
            if not self._over:
                raise
            task.uncancel()
            return _ending(CUT_OFF.format(seconds=self._seconds()))
        finally:
            self._open.discard(task)


def _ending(text: str) -> ToolResult:
    return ToolResult(content=text, meta={"onetool": {"error": "ServerEnding"}}, is_error=True)
