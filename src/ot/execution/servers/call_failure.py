"""Tells a call that failed from a connection that was lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import ValidationError

from ot.errors import ServerUnavailable, ToolError, ToolFailed
from ot.execution.servers.call_trace import CallTrace
from ot.execution.servers.connect_failure import REFUSED, failure_words, refusal_words

if TYPE_CHECKING:
    from ot.execution.servers.live_session import LiveSession

SESSION_NOT_FOUND = -32001
STALE = frozenset({404, 410})
"""The server knows nothing of the session, so that it cannot have carried the call out."""
KINDS = {INVALID_PARAMS: "ValueError", METHOD_NOT_FOUND: "LookupError"}


@dataclass(frozen=True)
class Lost:
    """The connection is of no more use; ``sent``: the call may have taken effect."""

    why: str
    sent: bool = False


def call_failure(error: Exception, tool: str, trace: CallTrace, live: LiveSession) -> ToolError | Lost:
    """Return what *error* means for the caller, or that the connection is lost."""
    if isinstance(error, ToolError):
        return error
    if trace.status in STALE or (trace.status == 400 and _code(error) in (CONNECTION_CLOSED, SESSION_NOT_FOUND)):
        return Lost(f"it answered HTTP {trace.status}: the session is over", sent=trace.taken)
    if trace.status in REFUSED:
        return ServerUnavailable(live.spec.name, refusal_words(trace.status), unknown=trace.taken)
    if trace.status >= 500 and _code(error) != CONNECTION_CLOSED and "error response" in str(error):
        return Lost(f"it answered HTTP {trace.status}", sent=True)
    if live.over or isinstance(error, httpx2.HTTPError):
        return Lost(failure_words(error), sent=trace.sent)
    if live.process is not None:
        return _failed(error, tool)  # a process has no session that it could forget
    if _code(error) == CONNECTION_CLOSED:
        # The stream of this one answer broke off; other calls on the connection go on.
        return ServerUnavailable(live.spec.name, str(error), unknown=trace.sent)
    if _code(error) == SESSION_NOT_FOUND:
        return Lost(f"it does not know the session any more: {error}", sent=trace.sent)
    return _failed(error, tool)


def _code(error: Exception) -> int:
    return error.code if isinstance(error, MCPError) else 0


def _failed(error: Exception, tool: str) -> ToolFailed:
    if isinstance(error, ValidationError):
        return ToolFailed(tool, "RuntimeError", f"the server's answer does not follow the protocol: {error}")
    return ToolFailed(tool, KINDS.get(_code(error), "RuntimeError"), str(error) or type(error).__name__)
