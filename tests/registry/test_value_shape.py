"""A shape tells names and types, and never a value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
