"""A value that is too large to be read whole is stored as any other value is."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.output.stored_text import stored_text, unread_lines
from ot.values.parts import Unread, has_many_parts
from ot_sdk import tagged

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner),
        st.tuples(inner, inner),
        st.dictionaries(st.text(), inner),
        st.dictionaries(st.integers(), inner),
    ),
    max_leaves=20,
)
CONTAINERS = st.one_of(
    st.lists(VALUES),
    st.tuples(VALUES, VALUES),
    st.dictionaries(st.text(), VALUES),
    st.dictionaries(st.integers(), VALUES),
)


def _unread(value: Any) -> Unread:
    return Unread(orjson.dumps(tagged.encode(value)))


@given(CONTAINERS)
def test_the_lines_are_those_of_the_value_read_whole(value: Any) -> None:
    assert "".join(unread_lines(_unread(value))) == stored_text(value, None)


@pytest.mark.parametrize(
    "value",
    [
        list(range(100_000)),
        [{"id": n, "text": 'a "quoted", \\ [text] {'} for n in range(20_000)],
        {f"key {n}": [n, [n]] for n in range(20_000)},
        tuple((n, b"x") for n in range(10_000)),
        ["x" * 200_000, "y", ["z" * 200_000]],
    ],
    ids=["numbers", "rows", "keys", "tuples", "long texts"],
)
def test_a_value_of_many_pieces_is_put_together_again(value: Any) -> None:
    assert "".join(unread_lines(_unread(value))) == stored_text(value, None)


@pytest.mark.parametrize("data", [b"[1,2", b"[1,,2]", b'{"a"}', b'["a]', b"[nul]"])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        list(unread_lines(Unread(data)))


@given(VALUES, st.integers(0, 30))
def test_parts_are_counted_outside_of_texts(value: Any, most: int) -> None:
    data = orjson.dumps(tagged.encode(value))
    assert has_many_parts(data, most) == (_marks(orjson.loads(data)) > most)


def _marks(value: Any) -> int:
    if not isinstance(value, list | dict):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(len(value) - 1, 0) + sum(map(_marks, inner))
