"""Large values in parts: the same JSON, less memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from test_tagged import VALUES, nested, shape

from ot_sdk import replies
from ot_sdk.errors import NotPlain, TooDeep
from ot_sdk.replies import JsonPieces
from ot_sdk.tagged import MAX_DEPTH, TAG, Encoder, decode, encode


def pieces(value: Any) -> list[bytes]:
    """Return the pieces of *value*."""
    return list(JsonPieces(Encoder).of(value))


def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let values of a few bytes count as large ones."""
    monkeypatch.setattr(replies, "SLICE", 3)
    monkeypatch.setattr(replies, "BATCH", 20)


@given(VALUES)
@example(["a" * 50, ["b" * 50, {"c": "d" * 50, "e": [1, "f" * 50]}], ("g" * 50,), b"h" * 50])
@example([["ä" * 50, "\ud800" * 50], {"x": {1: "y" * 50}}, {TAG: "z" * 50}])
@example([[], {}, (), "", [[]], [{}], {"a": []}, {"a": {}}, [""] * 30, [None] * 30])
@example([1 << 70, 1 << 70, 3, "a,b", 1.5, [1, 2], 3] * 5)
def test_pieces_are_the_json_of_the_whole(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        in_small_pieces(patch)
        cut = b"".join(pieces(value))
    whole = b"".join(pieces(value))
    assert shape(value) == shape(decode(json.loads(cut)))
    assert cut == whole


@given(VALUES)
def test_lines_are_elements_or_keys(value: Any) -> None:
    lines = b"".join(pieces([value, value])).removeprefix(b"[").removesuffix(b"]").split(b",\n")
    assert [shape(encode(value))] * 2 == [shape(json.loads(line)) for line in lines]
    lines = b"".join(pieces({"one": value, "two": value})).split(b"\n")
    assert [b'{"one"', b'"two"'] == [line.partition(b":")[0] for line in lines]


def test_no_piece_of_a_large_value_is_large() -> None:
    rows = [{"n": number, "text": "y" * 100} for number in range(20_000)]
    for value in (
        {"page": {"rows": rows}},
        [rows, [rows]],
        "x" * 5_000_000,
        [b"x" * 5_000_000],
        {"a": ["ä" * 5_000_000]},
    ):
        assert max(map(len, pieces(value))) < 2_000_000


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([0] * 5_000 + [object()], "[5000]"),
        ({"page": {"rows": ["x" * 9_000, {"key": object()}]}}, "['page']['rows'][1]['key']"),
        (iter([1, object()]), "[1]"),
    ],
)
def test_what_is_not_plain_is_refused_with_its_place(value: Any, path: str) -> None:
    with pytest.raises(NotPlain) as caught:
        pieces(value)
    assert path == caught.value.path


def test_depth_is_counted_through_all_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_pieces(monkeypatch)
    deepest: Any = "x" * 100
    for _ in range(MAX_DEPTH):
        deepest = [deepest, "y" * 100]
    assert deepest == decode(json.loads(b"".join(pieces(deepest))))
    with pytest.raises(TooDeep):
        pieces([deepest])
    with pytest.raises(TooDeep):
        pieces(nested(MAX_DEPTH + 1))


def test_an_iterator_inside_a_value_is_written_as_it_yields() -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in range(50_000):
            taken.append(number)
            yield "z" * 100

    stream = JsonPieces(Encoder).of({"rows": rows()})
    for _ in range(10):
        next(stream)
    assert 0 < len(taken) < 5_000
