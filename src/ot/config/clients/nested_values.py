"""Values by the keys that lead to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ot.config.clients.server_entry import table


def nest(path: Sequence[str], value: Any) -> Any:
    """Return *value* below the keys of *path*."""
    for step in reversed(path):
        value = {step: value}
    return value


def with_value(data: dict[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    """Return *data* with *value* at *path*."""
    step, *rest = path
    return {**data, step: with_value(table(data.get(step)), rest, value) if rest else value}


def without(data: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return *data* without what is at *path*."""
    step, *rest = path
    if not rest:
        return {key: value for key, value in data.items() if key != step}
    return {**data, step: without(table(data[step]), rest)} if isinstance(data.get(step), dict) else data
