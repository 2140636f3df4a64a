"""Why a server is unavailable, and whether a call failed or its connection was lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from pydantic import ValidationError

from ot.errors import ServerUnavailable, ToolError, ToolFailed
from ot.proxied.call_trace import CallTrace
from ot.proxied.failure_words import REFUSED, failure_words, status_words
from ot.proxied.reply_faults import Refused, UnusableReply
from ot.proxied.session import LiveSession
from ot.proxied.spec import ServerSpec
from ot.registry.announced_tool import mapping_of

SESSION_NOT_FOUND = -32001
SESSION_CODES = frozenset({SESSION_NOT_FOUND, INVALID_REQUEST, CONNECTION_CLOSED})
"""What servers write beside 404 where they do not know a session."""
STALE = frozenset({404, 410})
"""The server knows nothing of the session, so that it cannot have carried the call out."""
KINDS = {INVALID_PARAMS: "ValueError", METHOD_NOT_FOUND: "LookupError"}


@dataclass(frozen=True)
class Lost:
    """The connection is of no more use; ``sent``: the call may have taken effect."""

    why: str
    sent: bool = False


def call_failure(error: Exception, tool: str, trace: CallTrace, live: LiveSession) -> ToolError | Lost:
    """Return the caller's error for *error*, or that the connection is lost."""
    if isinstance(error, ToolError):
        return error
    if trace.refusal:
        return replace(trace.refusal, unknown=trace.answers > 0)
    if live.process is None and (found := _fault(trace, live.spec) or _refusal(error, trace, live.spec.name)):
        return found
    if live.over:
        return Lost(failure_words(error, live.spec.redactor().text), sent=trace.sent)
    if live.process is None and _code(error) == CONNECTION_CLOSED:
        if not trace.sent:
            return Lost("the connection was lost")
        # The stream of this one answer broke off; other calls on the connection go on.
        return ServerUnavailable(live.spec.name, str(error), unknown=True)
    return _failure(error, tool)


def _fault(trace: CallTrace, spec: ServerSpec) -> ToolError | Lost | None:
    """Return the error for a missing answer: the server said nothing."""
    fault, taken, server = trace.fault, trace.answers > 0, spec.name
    if isinstance(fault, ToolError):  # of whoever signs the requests
        return fault
    if isinstance(fault, Refused):
        pause, unknown = fault.retry_seconds, fault.unknown or taken
        return ServerUnavailable(server, str(fault), retry_seconds=pause, unknown=unknown)
    if isinstance(fault, UnusableReply):
        return ServerUnavailable(server, str(fault), unknown=True)
    if fault and (trace.sent or taken):
        # One request's trouble: the session and the other calls on it go on, and a server that is gone shows next time.
        return ServerUnavailable(server, failure_words(fault, spec.redactor().text), unknown=True)
    return Lost(failure_words(fault, spec.redactor().text)) if fault else None


def _refusal(error: Exception, trace: CallTrace, server: str) -> ToolError | Lost | None:
    """Return the error for a refused call or an unknown session."""
    status, code, taken = trace.status, _code(error), trace.answers > 0
    if status in STALE and (not trace.replied or code in SESSION_CODES or _names_session(error)):
        return Lost(f"it answered HTTP {status}: the session is over", sent=taken)
    if status == 400 and code in (CONNECTION_CLOSED, SESSION_NOT_FOUND):
        return Lost("it answered HTTP 400: the session is over", sent=taken)
    if status in REFUSED:
        return ServerUnavailable(server, status_words(status, server), unknown=taken)
    if status and _not_begun(error):
        return ServerUnavailable(server, f"it answered HTTP {status}: {error}", unknown=taken)
    if status and not trace.replied:
        return _bare_refusal(status, taken, server)
    if code == SESSION_NOT_FOUND and not status:
        return _session_not_found(error, trace, server)
    return None


def _bare_refusal(status: int, taken: bool, server: str) -> ToolError | Lost:
    if status >= 500:
        return Lost(status_words(status, server), sent=True)
    return ServerUnavailable(server, status_words(status, server), unknown=taken or status == 408)


def _session_not_found(error: Exception, trace: CallTrace, server: str) -> ToolError | Lost:
    """Tell a session that was forgotten from a request that took too long, which has the same code."""
    if not _names_session(error):
        return ServerUnavailable(server, f"it answered: {error}", unknown=True)
    return Lost(f"it does not know the session any more: {error}", sent=trace.answers > 1 or trace.begun)


def _not_begun(error: Exception) -> bool:
    """Return whether another OneTool says that it has done nothing for the request."""
    data: Any = error.error.data if isinstance(error, MCPError) else None
    return mapping_of(data).get("begun") is False


def _names_session(error: Exception) -> bool:
    return "session" in str(error).lower()


def _code(error: Exception) -> int:
    return error.code if isinstance(error, MCPError) else 0


def _failure(error: Exception, tool: str) -> ToolFailed:
    if isinstance(error, ValidationError):
        return ToolFailed(tool, "RuntimeError", f"the server's answer does not follow the protocol: {error}")
    return ToolFailed(tool, KINDS.get(_code(error), "RuntimeError"), str(error) or type(error).__name__)


def start_failure(live: LiveSession, trace: CallTrace, error: Exception) -> Exception:
    """Return the error to raise for a server that could not be connected or listed."""
    return trace.refusal or RuntimeError(start_failure_words(live, trace, error))


def start_failure_words(live: LiveSession, trace: CallTrace, error: Exception) -> str:
    """Return why a server could not be connected or listed."""
    if live.process and live.process.ending:
        return live.process.ending_words
    if trace.fault:
        return failure_words(trace.fault, live.spec.redactor().text)
    if trace.status and (not trace.replied or trace.status in REFUSED):
        return status_words(trace.status, live.spec.name)
    return (f"it answered HTTP {trace.status}: " if trace.status else "") + failure_words(
        error, live.spec.redactor().text
    )
