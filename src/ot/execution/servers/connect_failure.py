"""Says in plain words why a server could not be reached."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

MAX_TEXT = 600
REFUSED = (401, 403)


def refusal_words(status: int) -> str:
    """Return what the status of a refusal means, and what to do."""
    return f"it refuses us: HTTP {status}; check its headers"


def failure_words(error: BaseException) -> str:
    """Return why, from the innermost cause that says something."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLError) or "[SSL" in str(cause):
            return f"its TLS certificate or connection was refused: {_text(cause)}"
    kinds = {type(cause).__name__: cause for cause in causes}
    for kind in ("FileNotFoundError", "PermissionError", "NotADirectoryError"):
        if kind in kinds:
            return f"it cannot be started: {_text(kinds[kind])}"
    for kind in ("ConnectError", "ConnectTimeout"):
        if kind in kinds:
            return f"no connection: {_text(kinds[kind])}"
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
