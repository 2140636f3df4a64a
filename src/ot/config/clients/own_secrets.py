"""Gives a server's secrets names under which no other value is kept."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, count
from typing import Any

from ot.config.clients.literal_secrets import upper_name


def with_own_secrets(
    server: str, entry: Mapping[str, Any], secrets: Mapping[str, str], kept: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return *entry* and its *secrets*, those renamed that are *kept* already with another value."""
    names: dict[str, str] = {}
    taken = {**kept, **{name: value for name, value in secrets.items() if kept.get(name, value) == value}}
    for name, value in secrets.items():
        if taken.get(name, value) != value:
            names[name] = _free(upper_name(f"{server}_{name}"), value, taken)
            taken[names[name]] = value
    return _renamed(entry, names), {names.get(name, name): value for name, value in secrets.items()}


def _free(name: str, value: str, taken: Mapping[str, str]) -> str:
    numbered = (f"{name}_{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if taken.get(free, value) == value)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _renamed(entry, names) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType] - plain data of any shape
    if isinstance(value, list):
        return [_renamed(item, names) for item in value]  # pyright: ignore[reportUnknownVariableType] - as above
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(f"${{{old}}}", f"${{{new}}}")
    return value
