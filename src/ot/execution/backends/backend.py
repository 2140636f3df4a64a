"""Backend: the seam between the door and whatever carries out a call; Border: how its value comes to whoever called."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Protocol

from ot.config.models import Limits
from ot.errors import DataTooLarge, ResultTooLarge
from ot.execution.call_context import CallContext
from ot.registry.saved_programs import EnteredProgram
from ot.registry.tool import Tool
from ot.values.parts import Unread
from ot.values.plain import plain_data

__all__ = ["Backend", "Begun", "CallContext"]
"""The seam; what else is here is the door's own."""


class Backend(Protocol):
    """Carries out calls; knows nothing about who asked."""

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Make *tool* callable; installing or starting something first has separate deadlines."""
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
        """Return the exception that the call raised."""
        ...

    def add_done_callback(self, told: Callable[[Any], object], /) -> None:
        """Call *told* with this when it has ended."""
        ...


def eager_task[T](work: Coroutine[Any, Any, T], context: Context | None = None) -> asyncio.Task[T]:
    """Return the task of *work*, which has run to its first wait, or to its end, in *context* or a copy of this one."""
    return asyncio.Task(work, loop=asyncio.get_running_loop(), eager_start=True, context=context)


PARTS = "(limits.value_parts)"


class Keep(Protocol):
    """Stores a value."""

    def __call__(self, value: Any, *, tool: str, owner: str) -> Awaitable[str]:
        """Return its handle, or nothing."""
        ...


@dataclass(frozen=True)
class Border:
    """Makes a plain copy of a value within *limits*; a larger one is stored by *keep*, where there is a store."""

    limits: Limits = field(default_factory=Limits)
    keep: Keep | None = None

    async def take(self, tool: str, value: Any, owner: str) -> tuple[Any, int]:
        """Return the value as *owner* gets it, and its characters.

        Raises:
            ToolError: It is no plain data, or too large; the text says how to read what was stored.
        """
        if isinstance(value, EnteredProgram):  # no value, but what the engine is to run
            return value, 0
        most, parts = self.limits.value_bytes, self.limits.value_parts
        try:
            if isinstance(value, Unread):
                raise DataTooLarge(tool, PARTS)
            return await plain_data(value, where=f"the value of {tool}", max_bytes=most, max_parts=parts)
        except DataTooLarge as error:
            size = f"{parts:,} parts" if error.what.endswith(PARTS) else f"{most:,} bytes"
            handle = await self.keep(value, tool=tool, owner=owner) if self.keep else ""
            raise ResultTooLarge(tool, f"more than {size}", handle) from None
