"""Schemas in the words that every server of models knows."""

from __future__ import annotations

import json
from typing import Any

from ot.registry.tool_definitions import MAX_PARTS, plain_schema


def test_references_nulls_and_constants_are_written_out() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "size": {"$ref": "#/$defs/Size", "description": "How large"},
            "where": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "unit": {"const": "cm"},
            "count": {"type": ["integer", "null"]},
            "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}},
            "mixed": {"oneOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            "mode": {"anyOf": [{"const": "a"}, {"const": "b"}]},
        },
        "$defs": {
            "Size": {"enum": ["small", "large"], "type": "string"},
            "Part": {"type": "object", "properties": {"size": {"$ref": "#/$defs/Size"}}, "required": ["size"]},
        },
        "required": ["size"],
    }
    size = {"enum": ["small", "large"], "type": "string"}
    assert plain_schema(schema) == {
        "type": "object",
        "properties": {
            "size": {**size, "description": "How large"},
            "where": {"type": "string", "default": None},
            "unit": {"enum": ["cm"]},
            "count": {"type": "integer"},
            "parts": {
                "type": "array",
                "items": {"type": "object", "properties": {"size": size}, "required": ["size"]},
            },
            "mixed": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "mode": {"enum": ["a", "b"]},
        },
        "required": ["size"],
    }


def test_a_schema_that_refers_to_itself_ends() -> None:
    node = {"type": "object", "properties": {"left": {"$ref": "#/$defs/N"}, "right": {"$ref": "#/$defs/N"}}}
    plain = json.dumps(plain_schema({"$ref": "#/$defs/N", "$defs": {"N": node}}))
    assert "$ref" not in plain and plain.count("{") < 3 * MAX_PARTS
