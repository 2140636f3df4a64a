"""CallTrace: how far a request to a server got, from which follows whether it can have had an effect."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from ot.errors import ServerUnavailable
from ot.execution.call_context import CallContext


@dataclass(slots=True)
class CallTrace:
    """How far a request got; transports fill it in."""

    context: CallContext | None = None
    elsewhere: bool = False
    """Another host can take the request if this one does not."""
    sent: bool = False
    """Some of it was written out."""
    answers: int = 0
    """How many of its rounds were answered: what is refused later, such as the rest of an answer, undoes none."""
    begun: bool = False
    """The server has reported progress or asked a question, so the call has partly run."""
    status: int = 0
    """The HTTP status of the last refusal."""
    replied: bool = False
    """The refusal has a message of the protocol, so that it is the server's own answer."""
    fault: Exception | None = None
    """What kept the answer from coming, where it is not the server's own word."""
    refusal: ServerUnavailable | None = None
    """Why the server's login was of no use for it, where the refusal came from that."""
    resumed: int = 0
    """How often the rest of its answer was asked for."""
    over: bool = False
    """Nobody waits for it any more."""

    def begin(self) -> None:
        """Forget what became of an earlier attempt that had no effect."""
        self.sent = self.begun = self.replied = self.over = False
        self.answers = self.status = self.resumed = 0
        self.fault = self.refusal = None


current_trace: ContextVar[CallTrace | None] = ContextVar("ot_server_call_trace", default=None)
"""The trace of the request that the current task works for; the protocol's library carries it to the transport."""


def note_refusal(why: ServerUnavailable | None) -> None:
    """Keep why a login was of no use beside the request that the current task works for."""
    if (trace := current_trace.get()) is not None:
        trace.refusal = why
