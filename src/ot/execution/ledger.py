"""Ledger: the seam at which calls that may have effects are written down before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ot.execution.caller import Caller
from ot.registry.tool import Tool


@dataclass(frozen=True, slots=True)
class Effect:
    """One call, on its way to a tool that may change something."""

    caller: Caller
    run_id: str
    call_id: int
    line: int | None
    tool: Tool
    """With no hint that is laxer than those its user approved."""
    arguments: Mapping[str, Any]
    allowed: str = ""
    """What allowed it: a pattern of the policy, somebody's consent, or the tool's own word."""


class Ledger(Protocol):
    """Writes down what is sent and how it ended, so that "did it happen?" has an answer."""

    async def sent(self, effect: Effect) -> None:
        """Return when it is written down that this call is about to be sent."""
        ...

    async def ended(self, effect: Effect, how: Literal["done", "failed", "unknown"]) -> None:
        """Write down that the tool did it, that it said it did not, or that nobody knows."""
        ...


class NoLedger:
    """Writes nothing down."""

    async def sent(self, effect: Effect) -> None:
        """Forget it."""

    async def ended(self, effect: Effect, how: Literal["done", "failed", "unknown"]) -> None:
        """Forget it."""


class EffectWatcher(Protocol):
    """Watches calls on their way to tools, beside the ledger: an audit log is one."""

    async def sending(self, effect: Effect) -> None:
        """Take note that the call is about to be sent; a ToolError keeps it from being sent."""
        ...

    def ended(self, effect: Effect, how: Literal["done", "failed", "unknown"]) -> None:
        """Take note of how it ended; must be quick and must not raise."""
        ...
