"""What a proxied server's definitions may be: small, shallow, and complete without looking anything up elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from ot.registry.clean_text import clean_line
from ot.registry.server_definitions import ServerDefinitions

MAX_BYTES = 1 << 20
MAX_LISTING_BYTES = 16 << 20
MAX_DEPTH = 64
MAX_TOOLS = 5000
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
DATA = frozenset({"default", "examples", "example", "const", "enum"})
"""Keys of a schema that hold values, not schemas."""


def size_of_definition(definition: Any) -> tuple[int, str]:
    """Return about how many bytes *definition* is as JSON, and why it cannot be used, or nothing.

    Nothing is recursive here and the work is bounded: the definition is somebody else's.
    """
    size = 0
    waiting: list[tuple[Any, int]] = [(definition, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > MAX_DEPTH:
            return size, f"it is nested more than {MAX_DEPTH} levels deep"
        size += _own_size(value)
        if size > MAX_BYTES:
            return size, f"it is larger than {MAX_BYTES >> 20} MiB"
        waiting.extend((part, depth + 1) for part in _parts(value))
    return size, ""


def _own_size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) + 3
    if isinstance(value, Mapping):
        return 2 + sum(len(str(key)) + 4 for key in cast("Mapping[Any, Any]", value))
    # Counted before its items are looked at one by one.
    return 2 + 2 * len(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else 2


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value).values()
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()


def outside_reference(schema: Any) -> str:
    """Return the first reference of *schema* to something outside itself, or nothing; none is ever followed."""
    waiting: list[Any] = [schema]
    while waiting:
        value = waiting.pop()
        if not isinstance(value, Mapping):
            waiting.extend(_parts(value))
            continue
        for key, part in cast("Mapping[Any, Any]", value).items():
            if key in ("$ref", "$dynamicRef", "$recursiveRef") and isinstance(part, str) and ADDRESS.match(part):
                return part
            if key not in DATA:
                waiting.append(part)
    return ""


def within_limits(definitions: ServerDefinitions) -> tuple[ServerDefinitions, dict[str, str]]:
    """Return what can be used of *definitions*, and why a tool cannot, by name."""
    tools, refused = _usable(definitions.tools)
    prompts, _ = _usable(definitions.prompts)
    limited = replace(definitions, tools=tools, prompts=prompts, instructions=definitions.instructions[:MAX_BYTES])
    return limited, refused


def _usable(listed: Sequence[Mapping[str, Any]]) -> tuple[tuple[Mapping[str, Any], ...], dict[str, str]]:
    kept: dict[str, Mapping[str, Any]] = {}
    refused: dict[str, str] = {}
    total = 0
    for definition in listed[: 2 * MAX_TOOLS]:
        name = definition.get("name")
        size, why = size_of_definition(definition)
        if not isinstance(name, str) or not name.strip():
            refused["?"] = "a tool without a name"
        elif why := why or _outside(definition) or _too_many(kept, name, total + size):
            refused[clean_line(name, 100)] = why
        else:
            total += size
            kept[name] = definition
    return tuple(kept.values()), refused


def _outside(definition: Mapping[str, Any]) -> str:
    address = outside_reference(definition.get("inputSchema"))
    return f"its schema refers to {clean_line(address, 100)}, and nothing outside is looked up" if address else ""


def _too_many(kept: Mapping[str, Any], name: str, total: int) -> str:
    if name in kept:
        return "another tool has the same name"
    if len(kept) >= MAX_TOOLS:
        return f"the server has more than {MAX_TOOLS:,} tools"
    return (
        f"all definitions together are larger than {MAX_LISTING_BYTES >> 20} MiB" if total > MAX_LISTING_BYTES else ""
    )
