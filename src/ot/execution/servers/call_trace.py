"""CallTrace: how far one request got on its way to a server."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from ot.execution.call_context import CallContext


@dataclass(slots=True)
class CallTrace:
    """Whether any of it was written out or taken, and the HTTP status of the last refusal; transports fill it in."""

    context: CallContext | None = None
    sent: bool = False
    taken: bool = False
    """A part of it was answered: what is refused later, such as the rest of its answer, does not undo it."""
    status: int = 0


current_trace: ContextVar[CallTrace | None] = ContextVar("ot_server_call_trace", default=None)
"""The trace of the request that the current task works for; the protocol's library carries it to the transport."""
