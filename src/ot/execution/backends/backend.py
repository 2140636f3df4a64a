"""Backend: the seam between the door and whatever carries out a call."""

from __future__ import annotations

from typing import Any, Protocol

from ot.execution.call_context import CallContext
from ot.registry.tool import Tool

__all__ = ["Backend", "CallContext"]


class Backend(Protocol):
    """Carries out calls; knows nothing about who asked."""

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Return when *tool* can be called; installing or starting something first has separate deadlines."""
        ...

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value, or raise what it raised."""
        ...
