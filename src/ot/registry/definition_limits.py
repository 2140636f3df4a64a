"""What a proxied server's definitions may be: small, shallow, and complete without looking anything up elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from ot.registry.clean_text import clean_line
from ot.registry.server_definitions import ServerDefinitions

MAX_BYTES = 1 << 20
MAX_LISTING_BYTES = 16 << 20
MAX_DEPTH = 64
MAX_TOOLS = 5000
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
OBJECTS = frozenset({dict})
LISTS = frozenset({list, tuple})
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
DATA = frozenset({"default", "examples", "example", "const", "enum"})
"""Keys of a schema that hold values, not schemas."""


def size_of_definition(definition: Any) -> tuple[int, str]:
    """Return how many bytes *definition* is as JSON, and why it cannot be used, or nothing."""
    try:
        # The quick one of the two writers; it refuses what is very deep, and numbers that are very large.
        size = len(orjson.dumps(definition))
    except orjson.JSONEncodeError:
        size = -1
    if size > MAX_BYTES:
        return size, f"it is larger than {MAX_BYTES >> 20} MiB"
    if any(depth > MAX_DEPTH for depth, _ in enumerate(_levels(definition))):
        return size, f"it is nested more than {MAX_DEPTH} levels deep"
    return (size, "") if size >= 0 else _slow_size(definition)


def _slow_size(definition: Any) -> tuple[int, str]:
    try:
        size = len(json.dumps(definition))
    except (TypeError, ValueError):
        return 0, "it is not what JSON has"
    return size, f"it is larger than {MAX_BYTES >> 20} MiB" if size > MAX_BYTES else ""


def _levels(value: Any, skip: frozenset[str] = frozenset()) -> Iterator[list[Any]]:
    """Yield the objects and lists of each depth, at most one level more than is allowed.

    Level by level and not by recursion: the definition is somebody else's, and may be deep, or lead back to itself.
    """
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 2):
        # In a circle that branches the levels would grow without end; what fits the size never has so many.
        if not level or len(level) > MAX_BYTES:
            return
        yield level
        inside = [part for whole in level if type(whole) in OBJECTS for key, part in whole.items() if key not in skip]
        listed = [part for whole in level if type(whole) in LISTS for part in whole]
        level = [part for part in inside + listed if type(part) in OBJECTS or type(part) in LISTS]


def outside_reference(schema: Any) -> str:
    """Return the first reference of *schema* to something outside itself, or nothing; none is ever followed."""
    for level in _levels(schema, DATA):
        for part in level:
            for key in REFERENCES if type(part) in OBJECTS else ():
                reference: Any = part.get(key)
                if isinstance(reference, str) and ADDRESS.match(reference):
                    return reference
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
