"""References: what parts of an OpenAPI document point to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from ot.registry.schema_types import DATA, as_schema

MAX_INLINED = 20
MAX_EXPANDED = 50_000
"""Values in a part of a document once its references are written out: a few that fork at each step become millions."""
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keys of a schema whose own keys are names, not words of the language."""
NOISE = frozenset({"example", "examples", "externalDocs", "xml"})
SCHEMAS = ("components", "schemas")


class References:
    """Puts what a part of a document refers to in its place, all but schemas, whose names it collects."""

    def __init__(self, document: Mapping[str, Any], dropped: frozenset[str] = NOISE) -> None:
        """Look things up in *document*, and leave keywords out that are *dropped*."""
        self.names: dict[str, None] = {}
        self.dropped = dropped
        self._document = document
        self._depth = 0
        self._left = MAX_EXPANDED

    def expand(self, value: Any, *, of_names: bool = False) -> Any:
        """Return a copy of *value* whose references all lead to schemas by name; with *of_names* its keys are names.

        Raises:
            ValueError: It refers to something that is not there, or would become too large.
        """
        self._left -= 1
        if self._left < 0:
            raise ValueError(f"it has more than {MAX_EXPANDED:,} values once its references are written out")
        if isinstance(value, list):
            return [self.expand(part) for part in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        given = cast("dict[str, Any]", value)
        if of_names:
            return {key: self.expand(part) for key, part in given.items()}
        if isinstance(pointer := given.get("$ref"), str):
            return self._follow_reference(pointer, {key: part for key, part in given.items() if key != "$ref"})
        return self._with(given)

    def _follow_reference(self, pointer: str, beside: Mapping[str, Any]) -> Any:
        parts = parts_of(pointer)
        if parts[:2] == SCHEMAS and len(parts) == 3:
            self.names[parts[2]] = None
            return {"$ref": "#/" + "/".join(parts), **self._with(beside)}
        found = self.target(parts)
        if self._depth > MAX_INLINED:
            return {}
        self._depth += 1
        try:
            inlined = self.expand(found)
        finally:
            self._depth -= 1
        return {**as_schema(inlined), **self._with(beside)} if isinstance(inlined, dict) else inlined

    def _with(self, beside: Mapping[str, Any]) -> dict[str, Any]:
        return {
            key: part if key in DATA else self.expand(part, of_names=key in NAMED)
            for key, part in beside.items()
            # OpenAPI 3.0 allows no empty list here; generators write one where nothing is required.
            if key not in self.dropped and not key.startswith("x-") and not (key == "required" and part == [])
        }

    def target(self, parts: Sequence[str]) -> Any:
        """Return the value at that place of the document."""
        found: Any = self._document
        for part in parts:
            known = as_schema(found) or {str(at): value for at, value in enumerate(as_list(found))}
            if part not in known:
                raise ValueError(f"it refers to #/{'/'.join(parts)}, which does not exist")
            found = known[part]
        return found

    def resolve(self, value: Any) -> Mapping[str, Any]:
        """Return *value*, or what it refers to, as a mapping."""
        for _ in range(MAX_INLINED):
            pointer = as_schema(value).get("$ref")
            if not isinstance(pointer, str):
                break
            value = self.target(parts_of(pointer))
        return as_schema(value)


def parts_of(pointer: str) -> tuple[str, ...]:
    """Return the keys that a reference goes through; raise ValueError if it leads to another document."""
    if not pointer.startswith("#/"):
        advice = "put everything into one file, for example with 'npx @redocly/cli bundle'"
        raise ValueError(f"it refers to {pointer[:100]}, which is another document: {advice}")
    return tuple(unquote(part).replace("~1", "/").replace("~0", "~") for part in pointer[2:].split("/"))


def as_list(value: Any) -> Sequence[Any]:
    """Return *value* if it is a list, else an empty one."""
    return cast("Sequence[Any]", value) if isinstance(value, list) else ()
