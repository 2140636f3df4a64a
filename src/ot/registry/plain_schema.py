"""A JSON schema without the words that small models, and the servers that run them, do not understand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ot.registry.schema_types import as_schema, resolve, schemas

MAX_PARTS = 2000
"""Parts that are written out; a schema that needs more ends in parts that allow anything."""
MAX_DEPTH = 20
NULL = {"type": "null"}


def plain_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return *schema* with references written out, ``const`` as ``enum``, and nothing said of null."""
    return _Plain(schema).of(schema, MAX_DEPTH)


class _Plain:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left: Iterator[int] = iter(range(MAX_PARTS))

    def of(self, schema: Any, depth: int) -> dict[str, Any]:
        if depth < 0 or next(self._left, None) is None:
            return {}
        found = {key: value for key, value in as_schema(schema).items() if key not in ("$defs", "definitions")}
        if "$ref" in found:
            referred = self.of(resolve(self._root, found.pop("$ref")), depth - 1)
            return referred | self.of(found, depth - 1)
        if "const" in found:
            found["enum"] = [found.pop("const")]
        kinds = [kind for kind in schemas(found.get("type")) if kind != "null"]
        found |= {"type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
        return self._parts(found, depth - 1)

    def _parts(self, found: dict[str, Any], depth: int) -> dict[str, Any]:
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), Mapping):
                found[key] = self.of(found[key], depth)
        for key in ("properties", "patternProperties"):
            if isinstance(found.get(key), Mapping):
                found[key] = {name: self.of(part, depth) for name, part in as_schema(found[key]).items()}
        if "allOf" in found:
            found["allOf"] = [self.of(part, depth) for part in schemas(found["allOf"])]
        return self._choices(found, depth)

    def _choices(self, found: dict[str, Any], depth: int) -> dict[str, Any]:
        """Return *found* with its choices under one word; a single one that is left is no choice."""
        given = [*schemas(found.pop("anyOf", None)), *schemas(found.pop("oneOf", None))]
        parts = [self.of(part, depth) for part in given if part != NULL]
        if len(parts) == 1:
            return parts[0] | found
        enums = [as_schema(part).get("enum") for part in parts]
        if parts and all(enums):
            values = [value for enum in enums for value in cast("list[Any]", enum)]
            return {**parts[0], "enum": values} | found
        return found | ({"anyOf": parts} if parts else {})
