"""How a failed call is told to another OneTool, and what its program then sees: the same error, wherever that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from ot.errors import (
    DataTooLarge,
    DefinitionChanged,
    InvalidArguments,
    NotPlainData,
    OneToolError,
    ServerUnavailable,
    ToolBusy,
    ToolDenied,
    ToolError,
    ToolFailed,
    ToolTimeout,
    ToolUnavailable,
    WorkerDied,
)
from ot.registry.tool import Tool

SAME: Mapping[str, type[ToolError]] = {
    kind.__name__: kind
    for kind in (
        ToolFailed,
        InvalidArguments,
        NotPlainData,
        DataTooLarge,
        ToolTimeout,
        ToolBusy,
        ToolUnavailable,
        WorkerDied,
        ServerUnavailable,
    )
}
"""Errors that mean the same wherever the pack is."""
OF_POLICY = (ToolDenied, DefinitionChanged)
MAX_TEXT = 4000
PLAIN = (str, int, float, bool)
TYPES: Mapping[str, tuple[type, ...]] = {
    "seconds": (int, float),
    "retry_seconds": (int, float),
    "unknown": (bool,),
    "away": (bool,),
}
"""Of fields that are not text."""


def failure_form(error: OneToolError) -> dict[str, Any]:
    """Return *error* as plain data: its class and fields where those say it all, else its name and text."""
    if isinstance(error, OF_POLICY):
        # In the words of a local one its reader would look for the rule in the wrong configuration.
        return _form(ToolFailed("", "PermissionError", f"the host of the pack refuses it: {error}"))
    # A subclass, such as one that asks for a login, says more than its fields.
    return _form(error if type(error).__name__ in SAME else ToolFailed("", type(error).__name__, str(error)))


def _form(error: OneToolError) -> dict[str, Any]:
    found = {one.name: getattr(error, one.name) for one in fields(cast("Any", error))}
    return {"error": type(error).__name__, **{key: value for key, value in found.items() if isinstance(value, PLAIN)}}


def error_of_form(form: Mapping[str, Any], tool: Tool) -> ToolError:
    """Return the error of a call of *tool* that *form* tells of; whatever is wrong with it, it is an error."""
    kind = SAME.get(str(form.get("error")), ToolFailed)
    here = {"tool": tool.full_name, "pack": tool.pack}
    given = {one.name: here.get(one.name, form.get(one.name)) for one in fields(cast("Any", kind))}
    try:
        return kind(**{name: _check_type(name, value) for name, value in given.items() if value is not None})
    except TypeError:
        return ToolFailed(tool.full_name, "RuntimeError", str(form.get("message") or "its host says that it failed"))


def _check_type(name: str, value: Any) -> Any:
    if not isinstance(value, TYPES.get(name, str)):
        raise TypeError
    return value[:MAX_TEXT] if isinstance(value, str) else value
