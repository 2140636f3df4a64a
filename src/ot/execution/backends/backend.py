"""Backend: the seam between the door and whatever carries a call out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ot.execution.call_context import CallContext
from ot.registry.tool import Tool

__all__ = ["Backend", "BackendHealth", "CallContext"]


@dataclass(frozen=True, slots=True)
class BackendHealth:
    """How a backend is."""

    status: str = "ok"
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Backend(Protocol):
    """Carries calls out; knows nothing of who asked."""

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Return when *tool* can be called; what has to be installed or started first has deadlines of its own."""
        ...

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value, or raise what it raised."""
        ...

    async def health(self) -> BackendHealth:
        """Return how the backend is, at once."""
        ...

    async def retire(self, pack: str) -> None:
        """Let the pack's calls end, then let go of what was loaded for it."""
        ...

    async def aclose(self) -> None:
        """Let go of everything."""
        ...
