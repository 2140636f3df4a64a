"""A JSON schema reads like a Python type, whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from ot.registry.schema_types import MAX_TEXT, parameters_of_schema, python_type
from ot.registry.tool import Parameter, Tool, signature_text
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


def signature(schema: Any) -> str:
    return signature_text(Tool("p", "t", parameters_of_schema(schema)[0])).removeprefix("p.t")


def test_required_ones_come_first_and_optional_ones_show_their_default_or_a_placeholder() -> None:
    schema = {
        "properties": {
            "repo": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "query": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
            "label": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
    }
    assert signature(schema) == (
        "(query: str, repo: str = '...', limit: int = 10, tags: list[str] = [], label: str | None = None)"
    )


def test_names_that_python_does_not_have_are_renamed_and_remembered() -> None:
    schema = {"properties": {"max-results": {}, "from": {}, "max_results": {}, "ok": {}}}
    parameters, names = parameters_of_schema(schema)
    assert [parameter.name for parameter in parameters] == ["max_results_2", "from_", "max_results", "ok"]
    assert names == {"max_results_2": "max-results", "from_": "from"}


def test_descriptions_are_kept_on_one_line_without_what_is_hidden() -> None:
    schema = {
        "properties": {
            "since": {"type": "string", "format": "date", "description": "When\n  it\u200b began"},
            "url": {"format": "uri"},
            "n": {"title": "How many"},
        }
    }
    found = {parameter.name: parameter.description for parameter in parameters_of_schema(schema)[0]}
    assert found == {"since": "When it began (date)", "url": "(uri)", "n": "How many"}


@pytest.mark.parametrize("default", ["x" * 61, [1], {"a": 1}, 10**70, float("inf"), [[]]])
def test_a_default_that_is_long_or_deep_is_a_placeholder(default: Any) -> None:
    assert signature({"properties": {"a": {"default": default}}}) == "(a: Any = '...')"


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        ({"additionalProperties": True}, "(**more)"),
        ({"additionalProperties": {"type": "string"}}, "(**more)"),
        ({"patternProperties": {"^x-": {}}}, "(**more)"),
        ({"additionalProperties": False}, "()"),
        ({}, "()"),
    ],
)
def test_other_names_are_taken_only_where_the_schema_says_so(schema: Any, more: str) -> None:
    assert signature(schema) == more


def test_parameters_of_references_parts_and_choices_are_found() -> None:
    schema = {
        "$defs": {"base": {"properties": {"a": {"type": "string"}}, "required": ["a"]}},
        "allOf": [{"$ref": "#/$defs/base"}],
        "anyOf": [
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
            {"properties": {"c": {"type": "integer"}}},
        ],
    }
    assert signature(schema) == "(a: str, b: int = '...', c: int = '...')"


@given(SCHEMAS)
@settings(max_examples=80, deadline=None)
def test_any_schema_has_parameters_that_a_call_can_name(schema: Any) -> None:
    parameters, names = parameters_of_schema(schema)
    found = [parameter.name for parameter in parameters]
    assert len(set(found)) == len(found)
    assert all(name.isidentifier() for name in found)
    assert names.keys() <= set(found)
    assert [p.required for p in parameters] == sorted((p.required for p in parameters), reverse=True)


def test_no_more_parameters_are_made_than_a_call_could_have() -> None:
    parameters, _ = parameters_of_schema({"properties": {f"p{n}": {} for n in range(2000)}})
    assert len(parameters) == 500
    assert parameters[0] == Parameter("p0", "keyword", "Any", "'...'")


def test_a_required_name_that_is_described_nowhere_is_a_parameter() -> None:
    found, _ = parameters_of_schema({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]})
    assert [(parameter.name, parameter.required) for parameter in found] == [("a", True), ("b", True)]
