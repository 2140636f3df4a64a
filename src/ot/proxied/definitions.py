"""What a server says that it offers: what of it can be used, what its user approves, and what changed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from ot.registry.announced_tool import META, form_of
from ot.registry.clean_text import clean_line
from ot.registry.schema_types import DATA, as_schema, parameters_of_schema
from ot.registry.tool import Parameter, Tool

MAX_BYTES = 1 << 20
MAX_LISTING_BYTES = 16 << 20
MAX_DEPTH = 64
MAX_TOOLS = 5000
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
OBJECTS = frozenset({dict})
LISTS = frozenset({list, tuple})
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "title")
MAX_WORDS = 10


@dataclass(frozen=True)
class ServerDefinitions:
    """The server's own lists, as they came over the wire (camelCase keys), and when (seconds since the epoch)."""

    tools: tuple[Mapping[str, Any], ...] = ()
    prompts: tuple[Mapping[str, Any], ...] = ()
    has_resources: bool = False
    instructions: str = ""
    server_info: Mapping[str, Any] = field(default_factory=dict[str, Any])
    listed_at: float = 0.0
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why a tool cannot be used, by its name."""


def within_limits(definitions: ServerDefinitions) -> ServerDefinitions:
    """Return the usable *definitions*; the others are left out."""
    tools, refused = _usable(definitions.tools)
    prompts, _ = _usable(definitions.prompts)
    said = definitions.instructions[:MAX_BYTES]
    left_out = {**definitions.left_out, **refused}
    return replace(definitions, tools=tools, prompts=prompts, instructions=said, left_out=left_out)


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


def size_of_definition(definition: Any) -> tuple[int, str]:
    """Return the size of *definition* as JSON in bytes, and why it cannot be used, if so."""
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
        return 0, "it is not valid JSON data"
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


def pinned_part(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parts of a definition that are approved."""
    # A model reads the signature that another OneTool announces, so it is approved like the schema.
    announced = {META: told} if (told := form_of(definition)) else {}
    return {key: definition[key] for key in PINNED if definition.get(key) is not None} | announced


def definition_hash(definition: Mapping[str, Any]) -> str:
    """Return a hash of the parts of the definition that are approved."""
    text = json.dumps(pinned_part(definition), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def hints_of(definition: Mapping[str, Any]) -> tuple[bool | None, bool]:
    """Return whether a tool says that it only reads, if it says anything, and whether it says that it destroys."""
    hints = as_schema(definition.get("annotations"))
    read_only = hints.get("readOnlyHint")
    return read_only if isinstance(read_only, bool) else None, hints.get("destructiveHint") is True


def with_strictest_hints(tool: Tool, *definitions: Mapping[str, Any]) -> Tool:
    """Return *tool* as read-only only where it and all *definitions* say so, as destructive where any does."""
    said = [(tool.read_only, tool.destructive), *map(hints_of, definitions)]
    read_only = next((word for word, _ in said if word is not True), True)
    destructive = any(word for _, word in said)
    if (read_only, destructive) == said[0]:
        return tool
    return replace(tool, read_only=read_only, destructive=destructive)


def words_of_change(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe the differences in *new*, a few words each."""
    words = list(_words(old, new))
    if not words and old != new:
        words = ["details of its schema"]
    return (*words[:MAX_WORDS], *([f"and {len(words) - MAX_WORDS} more"] if len(words) > MAX_WORDS else []))


def _words(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for part in ("title", "description"):
        if old.get(part) != new.get(part):
            yield f"{part} changed"
    yield from _parameters(_by_name(old), _by_name(new))
    if old.get("outputSchema") != new.get("outputSchema"):
        yield "result type changed"
    if old.get(META) != new.get(META):
        yield "signature changed"
    before, after = as_schema(old.get("annotations")), as_schema(new.get("annotations"))
    for hint in HINTS:
        if before.get(hint) != after.get(hint):
            yield f"{hint}: {_show(before.get(hint))} -> {_show(after.get(hint))}"


def _parameters(old: Mapping[str, Parameter], new: Mapping[str, Parameter]) -> Iterator[str]:
    for name in old.keys() - new.keys():
        yield f"parameter '{name}' removed"
    for name, now in new.items():
        before = old.get(name)
        if before is None:
            yield f"parameter '{name}' added"
            continue
        if before.annotation != now.annotation:
            yield f"parameter '{name}': {before.annotation} -> {now.annotation}"
        if before.required != now.required:
            yield f"parameter '{name}' is {'required' if now.required else 'optional'} now"
        elif before.default != now.default:
            yield f"parameter '{name}': default {before.default} -> {now.default}"
        if before.description != now.description:
            yield f"parameter '{name}': description changed"


def _by_name(definition: Mapping[str, Any]) -> dict[str, Parameter]:
    parameters, _ = parameters_of_schema(definition.get("inputSchema"))
    return {parameter.name: parameter for parameter in parameters}


def _show(value: Any) -> str:
    return {None: "not given", True: "true", False: "false"}.get(value) or clean_line(str(value), 40)
