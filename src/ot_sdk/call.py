"""Call: one call that the server asked for, and which one is running here."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol, cast

from ot_sdk import tagged
from ot_sdk.errors import InvalidArguments, ToolTimeout
from ot_sdk.interrupts import Interrupts


class Prints(Protocol):
    """Takes what a call prints."""

    def write(self, text: str) -> bool:
        """Take *text*; false when the call has ended."""
        ...

    def close(self) -> None:
        """Send the rest, and take no more."""
        ...


class Call:
    """One call, from its request to its reply."""

    def __init__(self, id: str, tool: str, function: Callable[..., Any], params: Any, prints: Prints) -> None:
        self.id = id
        self.tool = tool
        self.function = function
        self.prints = prints
        self.seconds = params["ms"] / 1000
        self.deadline = time.monotonic() + self.seconds
        self.interrupts = Interrupts()
        self._arguments = params["arguments"]

    @property
    def seconds_left(self) -> float:
        """How long it may still take."""
        return self.deadline - time.monotonic()

    def begin(self) -> Any:
        """Call the tool and return what it returns.

        Raises:
            ToolTimeout: The call waited for its turn until its time was over.
            InvalidArguments: Its arguments cannot be read.
        """
        if self.seconds_left <= 0:
            raise self.timeout()
        return self.function(**self._decoded())

    def timeout(self) -> ToolTimeout:
        """Return the error for a call whose time is over."""
        return ToolTimeout(self.tool, self.seconds)

    def _decoded(self) -> dict[str, Any]:
        try:
            arguments = tagged.decode(self._arguments)
        except ValueError as error:
            raise InvalidArguments(f"the arguments of {self.tool} cannot be read: {error}") from None
        if not isinstance(arguments, dict):
            raise InvalidArguments(f"the arguments of {self.tool} are not given by name")
        return cast("dict[str, Any]", arguments)


current_call: ContextVar[Call | None] = ContextVar("ot_sdk_call", default=None)
"""The call whose tool is running here; threads and tasks that copy the context inherit it."""
