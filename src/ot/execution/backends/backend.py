"""Backend: the seam between the door and whatever carries a call out."""

from __future__ import annotations

from typing import Any, Protocol

from ot.execution.call_context import CallContext
from ot.registry.tool import Tool

__all__ = ["Backend", "CallContext"]


class Backend(Protocol):
    """Carries calls out; knows nothing of who asked."""

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Return when *tool* can be called; what has to be installed or started first has deadlines of its own."""
        ...

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value, or raise what it raised."""
        ...
