"""CallContext: what a backend knows of the call that it carries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ot.execution.ask_user import AskUser
from ot.execution.consent_question import Foresee
from ot.execution.deadline import Deadline
from ot.registry.tool import Tool


class Told(Protocol):
    """Takes what a tool tells while it runs: ``print``, ``progress``, ``content`` (a block for the reply)."""

    def __call__(self, what: str, tool: str, details: Mapping[str, Any]) -> None:
        """Take it; must be quick and must not raise."""
        ...


class CallTool(Protocol):
    """Calls another tool for a tool, through the door of the same run."""

    async def __call__(self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the tool's value; raise ToolError."""
        ...


class Approval(Protocol):
    """Holds a run to what its user says about the tools that ask first."""

    async def require(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext) -> None:
        """Return when the user allows the call; raise NotApproved."""
        ...


class Receive(Protocol):
    """Takes a tool's value over the border to whoever called."""

    async def __call__(self, tool: str, value: Any) -> tuple[Any, int]:
        """Return the value as the caller gets it, and its characters; raise ToolError."""
        ...


@dataclass(frozen=True, slots=True)
class CallContext:
    """Who calls, under which id, until when (on the monotonic clock), and what a tool may ask for meanwhile.

    ``clock`` is the run's own, which stands still while a question waits; ``deadline`` is where it lay at the call.
    ``consent`` is what the run's user has said; ``line`` and ``foresee`` tell of the program for the question.
    ``client`` is the name of the program that the caller uses, for statistics and logs.
    """

    caller: str
    run_id: str
    call_id: int
    deadline: float
    told: Told | None = None
    call: CallTool | None = None
    ask: AskUser | None = None
    clock: Deadline | None = None
    consent: Approval | None = None
    line: int | None = None
    foresee: Foresee | None = None
    client: str = ""
    receive: Receive | None = None
