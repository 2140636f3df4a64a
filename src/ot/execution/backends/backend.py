"""Backend: the seam between the door and whatever carries out a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ot.execution.call_context import CallContext
from ot.registry.tool import Tool

__all__ = ["Backend", "Begun", "CallContext"]


class Backend(Protocol):
    """Carries out calls; knows nothing about who asked."""

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Return when *tool* can be called; installing or starting something first has separate deadlines."""
        ...

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the tool's value, or raise what it raised."""
        ...


class Begun(Protocol):
    """A call that is under way; a task is one.

    A backend that needs no task for a call has a method ``begin`` beside ``call``, with the same parameters, that
    returns one: it may tell of its end at once, which spares the door a turn of the event loop.
    """

    def done(self) -> bool:
        """Return whether it has ended."""
        ...

    def cancelled(self) -> bool:
        """Return whether it ended by being cancelled."""
        ...

    def cancel(self) -> bool:
        """Give the call up."""
        ...

    def result(self) -> Any:
        """Return the value, or raise what the call raised."""
        ...

    def exception(self) -> BaseException | None:
        """Return what the call raised."""
        ...

    def add_done_callback(self, told: Callable[[Any], object], /) -> None:
        """Call *told* with this when it has ended."""
        ...
