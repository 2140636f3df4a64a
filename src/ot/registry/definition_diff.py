"""What a tool's definition is, as far as its user approved it, and what changed in it, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ot.registry.clean_text import clean_line
from ot.registry.schema_parameters import parameters_of_schema
from ot.registry.schema_types import as_schema
from ot.registry.tool import Parameter, Tool

PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "title")
MAX_WORDS = 10


def pinned_part(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return those parts of a definition that are approved."""
    return {key: definition[key] for key in PINNED if definition.get(key) is not None}


def definition_hash(definition: Mapping[str, Any]) -> str:
    """Return what changes when a part of the definition does that is approved."""
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
    """Return what is different in *new*, a few words each."""
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
    before, after = as_schema(old.get("annotations")), as_schema(new.get("annotations"))
    for hint in HINTS:
        if before.get(hint) != after.get(hint):
            yield f"{hint}: {_shown(before.get(hint))} -> {_shown(after.get(hint))}"


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


def _shown(value: Any) -> str:
    return {None: "not given", True: "true", False: "false"}.get(value) or clean_line(str(value), 40)
