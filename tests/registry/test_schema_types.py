"""A JSON schema reads like a Python type, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from ot.registry.schema_types import MAX_TEXT, python_type
from pace import effort
from registry.json_schemas import SCHEMAS

NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}},
    "required": ["value"],
}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "float"),
        ({"type": "boolean"}, "bool"),
        ({"type": "null"}, "None"),
        ({"type": "string", "format": "date-time"}, "str"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {"type": "object"}}, "list[dict]"),
        ({"items": {"type": "string"}}, "list[str]"),
        ({"type": "object"}, "dict"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"enum": ["a", "b"]}, "Literal['a', 'b']"),
        ({"enum": ["a", None]}, "Literal['a'] | None"),
        ({"enum": list(range(99))}, "Literal[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...]"),
        ({"const": 3}, "Literal[3]"),
        ({"const": None}, "None"),
        ({"type": ["null", "string"]}, "str | None"),
        ({"type": "string", "nullable": True}, "str | None"),
        ({"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "string"}]}, "str | None"),
        ({"oneOf": [{"type": "integer"}, {}]}, "Any"),
        ({"allOf": [{"type": "string"}]}, "str"),
        (
            {"properties": {"id": {"type": "integer"}, "a b": {"type": "string"}}, "required": ["id"]},
            "{id: int, 'a b'?: str}",
        ),
        (
            {"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            "{a: str, b?: Any}",
        ),
        ({"$defs": {"node": NODE}, "$ref": "#/$defs/node"}, "{value: int, next?: dict}"),
        ({"$ref": "#"}, "dict"),
        ({"$ref": "http://127.0.0.1:9/x"}, "Any"),
        ({"$ref": "file:///etc/passwd"}, "Any"),
        ({"$ref": "#/$defs/none"}, "Any"),
        (True, "Any"),
        (False, "Never"),
        ("nonsense", "Any"),
        ({"type": {"no": "type"}}, "Any"),
    ],
)
def test_a_schema_reads_like_a_type(schema: Any, text: str) -> None:
    assert python_type(schema) == text


@given(SCHEMAS)
@settings(max_examples=80, deadline=None)
def test_any_schema_has_a_short_type(schema: Any) -> None:
    text = python_type(schema)
    assert 0 < len(text) <= MAX_TEXT
    assert "\n" not in text


def test_a_long_type_is_told_with_less_detail() -> None:
    deep: Any = {"type": "integer"}
    for level in range(6):
        deep = {"properties": {f"{name}{level}": deep for name in ("alpha", "beta", "gamma")}, "required": []}
    assert python_type(deep) == "{alpha5?: {alpha4?: dict, beta4?: dict, gamma4?: dict}, beta5?: {alpha4?: dict, " + (
        "beta4?: dict, gamma4?: dict}, gamma5?: {alpha4?: dict, beta4?: dict, gamma4?: dict}}"
    )


def test_a_schema_that_unfolds_to_billions_of_parts_costs_little() -> None:
    parts: dict[str, Any] = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 9} for n in range(30)}
    parts |= {f"b{n}": {"allOf": [{"$ref": f"#/$defs/b{n + 1}"}] * 9} for n in range(30)}
    with effort() as spent:
        python_type({"$defs": parts, "$ref": "#/$defs/a0"})
        python_type({"$defs": parts, "$ref": "#/$defs/b0"})
    assert spent.loops < 400


def test_hidden_characters_of_a_schema_are_not_shown() -> None:
    assert python_type({"enum": ["a\u202eb"]}) == "Literal['ab']"
    assert python_type({"properties": {"a\u200b": {}}}) == "{a?: Any}"
