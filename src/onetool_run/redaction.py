"""Takes secrets out of values."""

from __future__ import annotations

from typing import Any, cast

from ot.brief_repr import Redact


def without_secrets(value: Any, redact: Redact) -> Any:
    """Return plain data with *redact* done to every text in it."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value).items()
        return {without_secrets(key, redact): without_secrets(entry, redact) for key, entry in entries}
    if isinstance(value, list | tuple | set | frozenset):
        parts = cast("list[Any]", value)
        return type(parts)(without_secrets(part, redact) for part in parts)
    return value
