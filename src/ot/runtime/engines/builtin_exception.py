"""The builtin exception that a program sees when a call of its fails."""

from __future__ import annotations

import builtins

from ot.errors import (
    DataTooLarge,
    DefinitionChanged,
    InvalidArguments,
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
"""Errors of ours that a tool raises, whose message says it all."""


def builtin_exception(error: OneToolError) -> Exception:
    """Return the builtin exception that a program sees for a failed call: name and text, nothing live."""
    if isinstance(error, ToolFailed):
        kind = BY_NAME.get(error.kind) or getattr(builtins, error.kind, None)
        if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, UNUSUAL):
            return kind(error.message)
        return RuntimeError(f"{error.kind}: {error.message}" if error.message else error.kind)
    kinds = [kind for base, kind in BUILTIN.items() if isinstance(error, base)]
    return (kinds[-1] if kinds else RuntimeError)(str(error))
