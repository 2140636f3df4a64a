"""Paths into stored values are read as they are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.output.result_path import Index, Key, Part, Step, join, parse_path

STEPS = st.one_of(
    st.builds(Key, st.text(min_size=1, max_size=12)),
    st.builds(Index, st.integers(-1000, 1000)),
    st.builds(Part, st.none() | st.integers(-99, 99), st.none() | st.integers(-99, 99)),
)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        (".", ()),
        ("$", ()),
        ("", ()),
        ("a", (Key("a"),)),
        (".a.b", (Key("a"), Key("b"))),
        ("$.a[0]", (Key("a"), Index(0))),
        ("$[0]", (Index(0),)),
        ("$ref", (Key("$ref"),)),
        ("a.$ref", (Key("a"), Key("$ref"))),
        ("a.b[0:10]", (Key("a"), Key("b"), Part(0, 10))),
        ("[-1]", (Index(-1),)),
        ("[:].x y", (Part(None, None), Key("x y"))),
        ("a['b.c'][\"d\"]", (Key("a"), Key("b.c"), Key("d"))),
        ("rows.0", (Key("rows"), Key("0"))),
        ("größe", (Key("größe"),)),
    ],
)
def test_a_path_is_its_steps(path: str, steps: tuple[Step, ...]) -> None:
    assert steps == parse_path(path)


@pytest.mark.parametrize(
    "path", ["a..b", "a.", "a[", "a[x]", "a[1:2:3]", "[]", "a]b", "a[--1]", "a['x]", "..", "a[ 1]"]
)
def test_what_is_no_path_is_refused_with_an_example(path: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be read at .*: write it as"):
        parse_path(path)


@pytest.mark.parametrize(("path", "error"), [(1, TypeError), (None, TypeError), ("a" * 1001, ValueError)])
def test_what_is_no_text_or_too_long_is_refused(path: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="path"):
        parse_path(path)


@given(st.lists(STEPS, max_size=6))
def test_joined_steps_are_read_back(steps: list[Step]) -> None:
    path = "."
    for step in steps:
        path = join(path, step)
    assert tuple(steps) == parse_path(path)
