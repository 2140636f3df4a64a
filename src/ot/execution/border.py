"""Border: how a tool's value comes to whoever called."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ot.config.models import Limits
from ot.errors import DataTooLarge, ResultTooLarge
from ot.values.parts import Unread
from ot.values.plain import plain_data

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
        most, parts = self.limits.value_bytes, self.limits.value_parts
        try:
            if isinstance(value, Unread):
                raise DataTooLarge(tool, PARTS)
            return await plain_data(value, where=f"the value of {tool}", max_bytes=most, max_parts=parts)
        except DataTooLarge as error:
            size = f"{parts:,} parts" if error.what.endswith(PARTS) else f"{most:,} bytes"
            handle = await self.keep(value, tool=tool, owner=owner) if self.keep else ""
            raise ResultTooLarge(tool, f"more than {size}", handle) from None
