"""Shapes of values and types: observed, written out, and reduced to what models know."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ot.build import BUNDLED, IN_WORKERS
from ot.registry.bundled_extensions import bundled_extensions
from ot.registry.tool import signature_text
from ot.registry.tool_definitions import MAX_PARTS, plain_schema
from ot.registry.tool_loader import find_named_types, write_type
from ot.registry.value_shape import MAX_TEXT, NOTHING, Shape, merge, shape_of, shape_of_json, shape_text, shape_to_json
from pace import effort

FIELDS = st.sampled_from(["id", "title", "owner", "content-type", "items", "url", "created_at", "name"])
SECRETS = st.from_regex(r"zq[0-9]{4}\w{4}", fullmatch=True)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SECRETS | st.integers(10**8, 10**9) | st.none() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(FIELDS | SECRETS, inner, max_size=5)
        | st.dictionaries(FIELDS, inner, max_size=3).map(json.dumps)
    ),
    max_leaves=20,
)


def text_of(*values: Any) -> str:
    shape = NOTHING
    for value in values:
        shape = merge(shape, shape_of(value))
    return shape_text(shape)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "int"),
        (True, "bool"),
        (None, "None"),
        ("words", "str"),
        (b"x", "bytes"),
        (object(), "Any"),
        ([], "list"),
        ({}, "dict"),
        ([1, 2.5, None], "list[float | int | None]"),
        ((1, "a"), "list[int | str]"),
        ({"id": 1, "title": "x"}, "{id: int, title: str}"),
        ([{"id": 1}, {"id": 2, "note": "x"}], "list[{id: int, note?: str}]"),
        ({"content-type": "x"}, "{'content-type': str}"),
        ('{"id": 1, "tags": ["a"]}', "str holding JSON {id: int, tags: list[str]}"),
        ("{not json", "str"),
        ("[]", "str"),
    ],
)
def test_a_value_has_a_shape(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    "keys",
    [
        ["2024-01-02", "2024-01-03"],
        ["/etc/passwd", "/home/x"],
        ["user@example.org", "other@example.org"],
        ["deadbeefcafe", "0123456789abcdef"],
        ["d41d8c", "e99a18"],
        ["12345", "67890"],
        ["ENG-101", "ENG-102"],
        ["größe", "höhe"],
        ["x" * 33],
        ["alpha", "bravo", "charlie", "delta"],
        [f"field{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(41)],
    ],
)
def test_keys_that_are_data_are_not_told(keys: list[str]) -> None:
    assert text_of({key: {"n": 1} for key in keys}) == "dict[str, {n: int}]"


def test_shapes_of_several_results_are_one() -> None:
    first = {"id": 1, "owner": {"login": "a"}, "tags": []}
    second = {"id": None, "owner": {"login": "b", "age": 3}, "tags": ["x"], "more": 1}
    assert text_of(first, second) == "{id: int | None, owner: {login: str, age?: int}, tags: list[str], more?: int}"


def test_keys_that_grow_without_end_become_values_by_key() -> None:
    letters = "abcdefghij"
    values = [{f"{one}{two}": 1} for one in letters for two in letters]
    assert text_of(*values) == "dict[str, int]"


def test_text_that_holds_json_only_sometimes_is_text() -> None:
    assert text_of('{"id": 1}', "no results") == "str"
    assert text_of('{"id": 1}', None) == "str holding JSON {id: int} | None"


@given(st.lists(VALUES, min_size=1, max_size=3))
@settings(max_examples=80, deadline=None)
def test_no_value_is_in_a_shape(values: list[Any]) -> None:
    shape = NOTHING
    for value in values:
        shape = merge(shape, shape_of(value))
    kept = json.dumps(shape_to_json(shape))
    for text in (shape_text(shape), kept):
        assert "zq" not in text
        assert not any(mark.isdigit() for mark in text)
    assert len(shape_text(shape)) <= MAX_TEXT
    assert shape_of_json(json.loads(kept)) == shape


@given(VALUES, VALUES)
@settings(max_examples=60, deadline=None)
def test_the_order_of_results_does_not_matter(one: Any, other: Any) -> None:
    first, second = shape_of(one), shape_of(other)
    assert merge(first, second) == merge(second, first)
    assert merge(first, first) == first


def test_a_large_result_costs_little_and_a_deep_one_ends() -> None:
    wide = [{"a": {"b": [{"c": n} for n in range(50)]}, "text": "x" * 1000} for _ in range(5000)]
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with effort() as spent:
        assert text_of(wide) == "list[{a: {b: list[{c: int}]}, text: str}]"
        assert text_of(deep) == "list[list[list[list[list[list[list]]]]]]"
    assert spent.loops < 200


@pytest.mark.parametrize("plain", [{"keys": 3}, {"items": 3}, {"types": 3}, {"keys": {"a": 1}}])
def test_what_is_no_shape_is_refused(plain: Any) -> None:
    with pytest.raises(ValueError, match="not a shape"):
        shape_of_json(plain)


def test_nothing_is_known_of_nothing() -> None:
    assert shape_text(Shape()) == "Any"


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


FILE = '''
import typing
from typing import NotRequired, TypedDict

class Listed(TypedDict):
    """An entry."""
    path: str
    size: int

class Info(Listed):
    note: NotRequired[str]

class Loose(typing.TypedDict, total=False):
    of: List[Listed]

class Other:
    x: int

type Place = str | Listed
type Nested = str | list[Nested]
Kind = Literal["a", "b"]
Size = int

class Again(TypedDict):
    more: list["Again"]
    self: Again
'''


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        ("Listed", "{path: str, size: int}"),
        ("List[Listed]", "list[{path: str, size: int}]"),
        ("dict[str, Info] | None", "dict[str, {path: str, size: int, note?: str}] | None"),
        ("Loose", "{of?: list[{path: str, size: int}]}"),
        ("Other", "Other"),
        ("Size", "Size"),
        ("Kind | None", "Literal['a', 'b'] | None"),
        ("dict[str, Place]", "dict[str, str | {path: str, size: int}]"),
        ("typing.Any", "typing.Any"),
        ("'Listed'", "'Listed'"),
        ("tuple[int, ...]", "tuple[int, ...]"),
    ],
)
def test_records_are_shown_with_their_keys(annotation: str, text: str) -> None:
    records = find_named_types(ast.parse(FILE))
    assert write_type(ast.parse(annotation, mode="eval").body, records) == text


def test_a_record_that_holds_itself_ends() -> None:
    records = find_named_types(ast.parse(FILE))
    assert write_type(ast.parse("Again", mode="eval").body, records).count("more") == 3
    assert write_type(ast.parse("Nested", mode="eval").body, records) == "str | list[str | list[str | list[Nested]]]"


def test_no_signature_of_a_bundled_tool_has_a_name_that_only_its_file_knows() -> None:
    packs = [*BUNDLED.packs(), *(extension.pack() for extension in bundled_extensions(IN_WORKERS))]
    signatures = [re.sub(r"'[^']*'", "", signature_text(tool)) for pack in packs for tool in pack.tools.values()]
    assert set(re.findall(r"\b[A-Z]\w+", " ".join(signatures))) <= {
        "Any", "Literal", "Mapping", "None", "Sequence", "False", "True"
    }  # fmt: skip


def test_a_function_that_says_nothing_returns_nothing() -> None:
    assert write_type(None, {}) == ""
