"""Why something failed, in words: the cause that says something, among those that only say that it failed."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator

from ot.proxied.reply_faults import Refused

TELLING = {
    **dict.fromkeys(("FileNotFoundError", "PermissionError", "NotADirectoryError"), "it cannot be started"),
    "ProxyError": "the proxy refused the connection; check HTTPS_PROXY, HTTP_PROXY and NO_PROXY",
    **dict.fromkeys(("ConnectError", "ConnectTimeout"), "no connection"),
}
"""Causes whose class says enough, and what it says."""
MAX_TEXT = 600
REFUSED = (401, 403)


def failure_words(error: BaseException, redact: Callable[[str], str] | None = None) -> str:
    """Return why, from the innermost cause that says something; passed through *redact*, as much as a person reads.

    What is not redacted is not cut: half a secret would not be found any more.
    """
    words = _words(error)
    return redact(words)[:MAX_TEXT] if redact else words


def _words(error: BaseException) -> str:
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
        return f"{error.strerror}{where}"
    text = str(error).removeprefix("Client failed to connect: ")
    return text or type(error).__name__


def pause_asked_for(error: BaseException) -> float:
    """Return the pause that the server asks for, in seconds, if that is the reason."""
    return max((cause.retry_seconds for cause in _causes(error) if isinstance(cause, Refused)), default=0.0)


def status_words(status: int, server: str) -> str:
    """Say what a bare status of *server* means, and what to do about it."""
    if status in REFUSED:
        login = f", or run `onetool auth login {server}` if it wants a login" if status == 401 else ""
        return f"it refuses us: HTTP {status}; check its headers{login}"
    if status >= 500:
        return f"it answered HTTP {status}: it has trouble of its own, try again later"
    if status == 429:
        return "it answered HTTP 429: call it less often, or again later"
    return f"it answered HTTP {status}: check that its url is the address of an MCP server"
