"""Whatever a program comes to has a form in JSON types, or is refused in one way."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ot.values.jsonable import MAX_DEPTH, jsonable
from ot.values.parts import NotSerializable, TooManyParts

SURROGATES = st.text(alphabet=st.characters())
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([64, 20_000]).map(lambda bits: -1 << bits),
    st.floats(),
    st.complex_numbers(),
    SURROGATES,
    st.binary(),
    st.decimals().filter(lambda value: not value.is_snan()),
    st.datetimes(),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.just(...),
    st.sampled_from([int, ValueError("x"), PurePosixPath("/a"), object()]),
)
KEYS = st.recursive(
    SCALARS, lambda inner: st.one_of(st.tuples(inner, inner), st.frozensets(inner, max_size=3)), max_leaves=4
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(KEYS, max_size=4),
    ),
    max_leaves=15,
)


def present(value: Any) -> Any:
    return jsonable(value)


@given(VALUES)
@example({(1 << 20_000,): 1})
@example({("\ud800",): 1})
@example({Decimal("NaN"), Decimal(1)})
def test_a_value_becomes_json_or_is_not_serializable(value: Any) -> None:
    try:
        shown = present(value)
    except NotSerializable:
        return
    assert shown == json.loads(json.dumps(shown, allow_nan=False))
    assert json.dumps(shown, ensure_ascii=False).encode()


@given(st.dictionaries(KEYS, st.integers(0, 99), max_size=6))
@example({"1 (int)": 3, 1: 1, "1": 2})
@example({"\ud800": 1, "?": 2})
@example({(2, 1): 1, (1, 2): 2})
@example({None: 1, "null": 2, "null (NoneType)": 3})
def test_no_two_keys_become_one(value: dict[Any, int]) -> None:
    assert sorted(value.values()) == sorted(present(value).values())


@given(st.dictionaries(st.text(), st.booleans(), max_size=6))
def test_keys_that_are_text_stay_as_they_are(value: dict[str, bool]) -> None:
    assert value == present(value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((1, (2,)), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (1 << 64, "18446744073709551616"),
        ((1 << 64) - 1, (1 << 64) - 1),
        (-(1 << 63) - 1, "-9223372036854775809"),
        (b"\xff", "/w=="),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(hours=1), "1:00:00"),
        (Decimal("1.10"), "1.10"),
        (1 + 2j, "(1+2j)"),
        (PurePosixPath("/a/b"), "/a/b"),
        (..., "Ellipsis"),
        (int, "<class 'int'>"),
        (ValueError("x"), "ValueError: x"),
        ("\ud800", "?"),
        (
            {1: "a", False: "b", None: "c", (1, 2): "d", 1.5: "e"},
            {"1": "a", "false": "b", "null": "c", "(1, 2)": "d", "1.5": "e"},
        ),
        ({1: "a", "1": "b"}, {"1 (int)": "a", "1": "b"}),
        ({(2, 1): "a"}, {"(2, 1)": "a"}),
    ],
)
def test_each_type_has_one_form(value: Any, shown: Any) -> None:
    assert shown == present(value)


def test_whatever_else_there_is_is_described_by_whoever_knows_it() -> None:
    def describe(value: Any) -> Any:
        return {"kind": "object"}

    assert jsonable([object()], describe) == [{"kind": "object"}]
    assert present([object()]) == ["<object>"]


def nested(wrap: Callable[[Any], Any], depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize("wrap", [lambda v: [v], lambda v: {"a": v}, lambda v: (v,)], ids=["list", "dict", "tuple"])
def test_a_value_nested_too_deeply_is_refused(wrap: Callable[[Any], Any]) -> None:
    assert present(nested(wrap, MAX_DEPTH))
    with pytest.raises(NotSerializable, match="levels deep"):
        present(nested(wrap, MAX_DEPTH + 1))


def test_a_small_graph_that_unfolds_to_billions_is_refused() -> None:
    with pytest.raises(TooManyParts):
        jsonable(nested(lambda v: [v] * 10, 20), max_nodes=10_000)
