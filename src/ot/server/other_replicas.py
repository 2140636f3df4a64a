"""OtherReplicas: the seam to processes of the same server that may hold a run, or the session that it names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from fastmcp import Context
from fastmcp.tools import ToolResult

from ot.execution.caller import Caller
from ot.runtime.reply import Reply
from ot.runtime.run_events import TellEvent
from ot.server.drain import Drain
from ot.server.parked_runs import ParkedRun, ParkedRuns
from ot.workspace import Workspace

type Turn = Callable[[ParkedRun, TellEvent | None], Awaitable[ToolResult]]
"""Lets a run go on until its next question or its reply."""
type Elsewhere = Callable[[TellEvent | None], Awaitable[ToolResult]]
"""Gets the result from another replica, telling of progress."""


@dataclass(frozen=True)
class Here:
    """How this replica itself answers runs."""

    enter: Callable[[str], AbstractAsyncContextManager[Workspace]]
    """Opens the workspace of a principal."""
    parked: ParkedRuns
    drain: Drain
    turn: Turn
    result: Callable[[Reply], ToolResult]


class OtherReplicas(Protocol):
    """Finds out which replica holds a run or a session, and has it go on there."""

    async def start(self) -> None:
        """Be there for the other replicas."""
        ...

    async def elsewhere(
        self, command: str, session: str, workspace: Workspace, caller: Caller, ctx: Context
    ) -> Elsewhere | None:
        """Return how to get the result from another replica, or nothing where this one is to answer."""
        ...

    async def aclose(self) -> None:
        """Be there no more."""
        ...


type JoinOthers = Callable[[Here], OtherReplicas]
"""What makes this replica, which answers as *Here* says, one of several."""
