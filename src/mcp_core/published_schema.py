"""The JSON schemas of what a tool takes and gives: what they allow is accepted, and nothing else is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue

from mcp_core.result import Result

DATA = frozenset({"default", "examples", "const", "enum"})
"""Keys of a schema that hold values, not schemas."""
LEFT_OUT = frozenset({"title", "uniqueItems"})
"""Titles made of names tell nothing; of a set's values one given twice is no error."""


class PublishedSchema(GenerateJsonSchema):
    """Writes schemas as strict as the validation is, which at every depth takes no unknown keys."""

    def generate(self, schema: Any, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        """Return the schema of what is read, or of what is written."""
        return _publish_part(super().generate(schema, mode), closed=mode == "validation")

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """Return a schema that says of texts that they are numbers."""
        found = super().decimal_schema(schema)
        for part in found.get("anyOf", [found]):
            if part.get("type") == "string":
                part["format"] = "decimal"
        return found


def _publish_part(part: Any, *, closed: bool) -> Any:
    if isinstance(part, list):
        return [_publish_part(item, closed=closed) for item in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    kept: dict[str, Any] = {
        key: value if key in DATA else _publish_part(value, closed=closed)
        for key, value in cast("dict[str, Any]", part).items()
        if key not in LEFT_OUT or isinstance(value, dict)
    }
    closes = closed and kept.get("type") == "object" and "properties" in kept
    return kept | ({"additionalProperties": False} if closes else {})


def returned_type(function: Callable[..., Any]) -> Any:
    """Return the type of a tool's value: what stands in its ``Result[...]``, or its whole annotation."""
    returns = get_type_hints(inspect.unwrap(function)).get("return", Any)
    return get_args(returns)[0] if get_origin(returns) is Result else returns


def returned_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the JSON schema of a tool's value; an empty one, which allows everything, where it is not known."""
    try:
        return TypeAdapter(returned_type(function)).json_schema(mode="serialization", schema_generator=PublishedSchema)
    except PydanticUserError:
        return {}
