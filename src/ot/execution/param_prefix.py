"""Writes abbreviated parameter names out in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ot.errors import AmbiguousArgument
from ot.registry.signature import signature_text
from ot.registry.tool import Tool


def complete_name(name: str, parameters: Sequence[str]) -> str:
    """Return the parameter that *name* stands for, or *name* itself."""
    # Only a non-empty ASCII identifier may abbreviate: a look-alike letter must never match.
    if name in parameters or not (name.isascii() and name.isidentifier()):
        return name
    return next((full for full in parameters if full.startswith(name)), name)


def complete_names(given: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """Return *given* under the tool's full parameter names.

    Raises:
        AmbiguousArgument: Two given names mean the same parameter.
    """
    parameters = [p.name for p in tool.parameters if p.kind in ("any", "keyword")]
    completed: dict[str, Any] = {}
    source: dict[str, str] = {}
    for name, value in given.items():
        full = complete_name(name, parameters)
        # Without this, q= after query= would silently win.
        if full in source:
            raise AmbiguousArgument(tool.full_name, full, (source[full], name), signature_text(tool))
        source[full] = name
        completed[full] = value
    return completed
