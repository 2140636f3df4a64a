"""Why a server is unavailable, and whether a call failed or its connection was lost."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import ValidationError

from ot.errors import ServerUnavailable, ToolError, ToolFailed
from ot.servers.call import CallTrace
from ot.servers.session import LiveSession

SESSION_NOT_FOUND = -32001
STALE = frozenset({404, 410})
"""The server knows nothing of the session, so that it cannot have carried the call out."""
KINDS = {INVALID_PARAMS: "ValueError", METHOD_NOT_FOUND: "LookupError"}
TELLING = {
    **dict.fromkeys(("FileNotFoundError", "PermissionError", "NotADirectoryError"), "it cannot be started"),
    **dict.fromkeys(("ConnectError", "ConnectTimeout"), "no connection"),
}
"""Causes whose class says enough, and what it says."""
MAX_TEXT = 600
REFUSED = (401, 403)


@dataclass(frozen=True)
class Lost:
    """The connection is of no more use; ``sent``: the call may have taken effect."""

    why: str
    sent: bool = False


def call_failure(error: Exception, tool: str, trace: CallTrace, live: LiveSession) -> ToolError | Lost:
    """Return what *error* means for the caller, or that the connection is lost."""
    if isinstance(error, ToolError):
        return error
    if trace.refusal:
        trace.refusal.unknown = trace.taken
        return trace.refusal
    if trace.status in STALE or (trace.status == 400 and _code(error) in (CONNECTION_CLOSED, SESSION_NOT_FOUND)):
        return Lost(f"it answered HTTP {trace.status}: the session is over", sent=trace.taken)
    if trace.status in REFUSED:
        return ServerUnavailable(live.spec.name, _refusal_words(trace.status, live.spec.name), unknown=trace.taken)
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


def start_failure(live: LiveSession, trace: CallTrace, error: Exception) -> Exception:
    """Return what to raise for a server that could not be connected or listed."""
    return trace.refusal or RuntimeError(start_failure_words(live, trace, error))


def start_failure_words(live: LiveSession, trace: CallTrace, error: Exception) -> str:
    """Return why a server could not be connected or listed."""
    if live.process and live.process.ending:
        return live.process.ending_words
    if trace.status in REFUSED:
        return _refusal_words(trace.status, live.spec.name)
    return (f"it answered HTTP {trace.status}: " if trace.status else "") + failure_words(error)


def _refusal_words(status: int, server: str) -> str:
    login = f", or run `onetool auth login {server}` if it wants a login" if status == 401 else ""
    return f"it refuses us: HTTP {status}; check its headers{login}"


def failure_words(error: BaseException) -> str:
    """Return why, from the innermost cause that says something."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLError) or "[SSL" in str(cause):
            return f"its TLS certificate or connection was refused: {_text(cause)}"
    kinds = {type(cause).__name__: cause for cause in causes}
    for kind, words in TELLING.items():
        if kind in kinds:
            return f"{words}: {_text(kinds[kind])}"
    return _text(causes[-1] if not str(error) else error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, those in its group, and those that caused it."""
    seen: set[int] = set()
    waiting = [error]
    while waiting and len(seen) < 100:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions  # pyright: ignore[reportUnknownMemberType] - of any kind
        waiting += [cause for cause in (current.__cause__, current.__context__) if cause is not None]


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and not isinstance(error, ssl.SSLError):
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"[:MAX_TEXT]
    text = str(error).removeprefix("Client failed to connect: ")
    return (text or type(error).__name__)[:MAX_TEXT]
