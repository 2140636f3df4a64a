"""The exception that a program sees when a call fails, and the texts for a needless ``await`` and the CPU limit."""

from __future__ import annotations

import builtins

from ot.errors import (
    DataTooLarge,
    DefinitionChanged,
    InvalidArguments,
    LimitExceeded,
    NotPlainData,
    OneToolError,
    ResultExpired,
    ResultNotFound,
    ToolDenied,
    ToolFailed,
    ToolTimeout,
    UnknownPack,
    UnknownTool,
)

UNUSUAL = (UnicodeError, ExceptionGroup)
"""Builtins that cannot be made from a message alone."""

BUILTIN: dict[type[OneToolError], type[Exception]] = {
    UnknownPack: NameError,
    UnknownTool: AttributeError,
    InvalidArguments: TypeError,
    NotPlainData: TypeError,
    DataTooLarge: ValueError,
    ToolDenied: PermissionError,
    DefinitionChanged: PermissionError,
    ToolTimeout: TimeoutError,
}


BY_NAME: dict[str, type[Exception]] = {ResultNotFound.__name__: LookupError, ResultExpired.__name__: LookupError}
"""OneTool's own errors that a tool may raise; their message is complete."""


def builtin_exception(error: OneToolError) -> Exception:
    """Return the builtin exception that a program sees for a failed call: name and text, nothing live."""
    if isinstance(error, ToolFailed):
        kind = BY_NAME.get(error.kind) or getattr(builtins, error.kind, None)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, UNUSUAL):
            return kind(error.message)
        return RuntimeError(f"{error.kind}: {error.message}" if error.message else error.kind)
    kinds = [kind for base, kind in BUILTIN.items() if isinstance(error, base)]
    return (kinds[-1] if kinds else RuntimeError)(str(error))


HINT = "await the call itself: await asyncio.gather(*[pack.f(x=i) for i in items]); plain calls need no await"


def await_hint(kind: str, message: str, line: str) -> str:
    """Return the hint when an error with this *message*, at this *line* of a program, looks like that mistake."""
    named = any(word in message for word in ("await", "gather", "coroutine"))
    # Given a list or dict, gather stumbles before it can say what it wants.
    stumbled = message.startswith("unhashable type") and "gather(" in line
    return HINT if kind == "TypeError" and (named or stumbled) else ""


def cpu_limit_error(seconds: float) -> LimitExceeded:
    """Return the error of a program that has used up its *seconds* of computing."""
    less = "let a tool search, query or convert, or split the work over several runs"
    return LimitExceeded("cpu_seconds", f"the program computed for more than {seconds:g} s: {less}")
