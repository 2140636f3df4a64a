"""Values as JSON and back."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path, PureWindowsPath
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ot_sdk import wire
from ot_sdk.errors import NotPlain, TooDeep, TooMany
from ot_sdk.host import Secret
from ot_sdk.tagged import LARGEST, MAX_DEPTH, SMALLEST, TAG, Encoder, decode, encode

# Whole seconds: of an offset below one second Python itself reads nothing back.
OFFSETS = st.builds(lambda seconds: timezone(timedelta(seconds=seconds)), st.integers(-86_399, 86_399))
HASHABLE = st.deferred(lambda: SCALARS | st.tuples(HASHABLE) | st.frozensets(HASHABLE, max_size=3))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(1 << 300), 1 << 300)
    | st.floats()
    | st.text(st.characters(exclude_categories=()))
    | st.binary()
    | st.decimals().filter(lambda number: not number.is_snan())  # which cannot be hashed
    | st.dates()
    | st.times()
    | st.times(timezones=OFFSETS)
    | st.datetimes()
    | st.datetimes(timezones=OFFSETS)
    | st.timedeltas()
)
KEYS = st.text(max_size=5) | st.sampled_from([TAG, "v"]) | HASHABLE
VALUES = st.recursive(
    SCALARS | st.sets(HASHABLE, max_size=3) | HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([TAG, "v", "x"]) | st.text(), inner),
)
KINDS = [
    "str",
    "tuple",
    "set",
    "frozenset",
    "dict",
    "bytes",
    "int",
    "float",
    "decimal",
    "datetime",
    "date",
    "time",
    "timedelta",
]


def shape(value: Any) -> Any:
    """Return *value* as text that tells types apart, and takes NaN for what it is."""
    if isinstance(value, dict):
        return "dict", [(shape(key), shape(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value).__name__, [shape(item) for item in value]
    if isinstance(value, set | frozenset):
        return type(value).__name__, sorted(repr(shape(item)) for item in value)
    if isinstance(value, datetime | time):
        return type(value).__name__, value.isoformat()
    return type(value).__name__, repr(value)


@given(VALUES)
@example({"$ot": "bytes", "v": "no tag"})
@example([math.nan, -math.inf, -0.0, Decimal("sNaN"), Decimal("-0"), 1 << 64, (1 << 64) - 1, -(1 << 63) - 1])
@example(["\ud83d\ude00", {"\ud83d\ude00": 1}, {"ä": "\U0001f600"}])
@example({1: 1, "1": 2, None: 3, (1, frozenset({2})): 4})
def test_decoding_undoes_encoding_for_every_plain_value(value: Any) -> None:
    assert shape(value) == shape(decode(encode(value)))


@given(VALUES)
def test_what_is_encoded_passes_the_wire_unchanged(value: Any) -> None:
    encoded = encode(value)
    assert shape({"value": encoded}) == shape(wire.parse(wire.to_json({"value": encoded})))


PLAIN_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(SMALLEST, LARGEST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: key != TAG), inner),
)


@given(PLAIN_JSON)
def test_json_types_are_written_as_they_are(value: Any) -> None:
    assert shape(value) == shape(encode(value))


@given(JSON | st.builds(lambda kind, value: {TAG: kind, "v": value}, st.sampled_from(KINDS), JSON))
@example({TAG: "tuple"})
@example({TAG: "list", "v": []})
@example({TAG: ["tuple"], "v": []})
@example({TAG: "set", "v": [[1]]})
@example({TAG: "dict", "v": [[1]]})
@example({TAG: "dict", "v": [[{}, 1]]})
@example({TAG: "dict", "v": [[1, 1], [1, 2]]})
@example({TAG: "timedelta", "v": [10**12, 0, 0]})
@example({TAG: "decimal", "v": "one"})
@example({TAG: "int", "v": "0x_1"})
@example({TAG: "bytes", "v": "*"})
@example({TAG: "datetime", "v": "today"})
@example({TAG: "tuple", "v": [], "w": 1})
def test_decoding_anything_gives_a_value_or_a_value_error(encoded: Any) -> None:
    try:
        value = decode(encoded)
    except ValueError:
        return
    encode(value)


@pytest.mark.parametrize("tag", [{TAG: "tuple", "v": [], "w": 1}, {TAG: "no"}, {TAG: "set", "v": [[]]}, {TAG: None}])
def test_a_malformed_tag_is_a_value_error(tag: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="tag"):
        decode([tag])


# ---------------------------------------------------------------- what tools return beside plain values


@dataclass
class Row:
    """A row, with a field that is none of its own."""

    table: ClassVar[str] = "rows"
    name: str
    tags: set[str] = field(default_factory=set[str])
    parent: Row | None = None


@dataclass(frozen=True)
class Point:
    """A point that can be a member of a set."""

    x: int


class Model:
    """An object as a validation library makes them."""

    def model_dump(self) -> dict[str, Any]:
        """Return it as a dict."""
        return {"name": "model", "when": date(2026, 1, 2)}


class Colour(Enum):
    """An enum."""

    RED = ("r", 1)


class Level(IntEnum):
    """An enum whose members are ints."""

    HIGH = 3


class Text(str):
    """A text with a text of its own."""

    def __str__(self) -> str:
        return "something else"


class Pair(NamedTuple):
    """A named tuple."""

    left: int
    right: list[int]


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        (
            Row("a", {"t"}, Row("b")),
            {"name": "a", "tags": {"t"}, "parent": {"name": "b", "tags": set(), "parent": None}},
        ),
        ([Model()], [{"name": "model", "when": date(2026, 1, 2)}]),
        (Colour.RED, ("r", 1)),
        ({Level.HIGH: Level.HIGH}, {3: 3}),
        (Path("a") / "b", "a/b"),
        (PureWindowsPath("a\\b"), "a\\b"),
        (Pair(1, [2]), (1, [2])),
        (Text("text"), "text"),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ({"a": 1}.keys(), ["a"]),
        ({"a": 1}.items(), [("a", 1)]),
        (deque([1, 2]), [1, 2]),
        (range(3), [0, 1, 2]),
        ((n * n for n in range(3)), [0, 1, 4]),
        (map(str, [1]), ["1"]),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        ({Point(1)}, [{"x": 1}]),
        ({(1, Point(1))}, [(1, {"x": 1})]),
    ],
)
def test_what_is_nearly_plain_crosses_as_the_plain_value_it_stands_for(given_value: Any, expected: Any) -> None:
    assert shape(expected) == shape(decode(encode(given_value)))


@pytest.mark.parametrize(
    ("value", "path", "type_name"),
    [
        (object(), "", "object"),
        (1j, "", "complex"),
        (int, "", "type"),
        (Secret("hidden"), "", "Secret"),
        ({"rows": [1, {"key": object()}]}, "['rows'][1]['key']", "object"),
        ([{1: object()}], "[0][1]", "object"),
        ((1, print), "[1]", "builtin_function_or_method"),
        ({Point(1): 1}, f"[{Point(1)!r}]", "a key of type Point"),
    ],
)
def test_what_is_not_plain_is_refused_with_its_place_and_type(value: Any, path: str, type_name: str) -> None:
    with pytest.raises(NotPlain) as caught:
        encode(value)
    assert (path, type_name) == (caught.value.path, caught.value.type_name)
    assert f"value{path}: {type_name} is not plain data" in str(caught.value)


def test_an_open_file_is_not_read_as_if_it_were_a_list() -> None:
    with Path(__file__).open() as file, pytest.raises(NotPlain):
        encode(file)


def nested(levels: int) -> list[Any]:
    """Return a list in a list, so many times."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_as_many_levels_as_allowed_cross_and_one_more_does_not() -> None:
    deepest = nested(MAX_DEPTH)
    assert deepest == decode(encode(deepest))
    with pytest.raises(TooDeep):
        encode([deepest])
    with pytest.raises(ValueError, match="levels deep"):
        decode([deepest])


def test_a_value_that_holds_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append({"again": circle})
    with pytest.raises(TooDeep, match="too deeply"):
        encode(circle)


def test_an_object_whose_model_dump_returns_itself_is_refused() -> None:
    class Same:
        def model_dump(self) -> Same:
            return self

    with pytest.raises(NotPlain):
        encode(Same())


def test_too_many_parts_are_refused_on_both_sides() -> None:
    with pytest.raises(TooMany):
        encode(iter(int, 1), max_nodes=1000)
    with pytest.raises(ValueError, match="too many"):
        decode([0] * 1000, max_nodes=1000)
    assert [0] * 999 == decode(encode([0] * 999, max_nodes=1000), max_nodes=1000)


def test_a_redacting_encoder_reaches_texts_keys_and_bytes() -> None:
    encoder = Encoder(
        redact=lambda text: text.replace("key", "***"), redact_bytes=lambda data: data.replace(b"key", b"*")
    )
    value = {"a key": ["my key", ("key", b"keyhole")], 1: "key"}
    assert {"a ***": ["my ***", ("***", b"*hole")], 1: "***"} == decode(encoder.convert(value))


def test_keys_that_redacting_makes_equal_stay_two() -> None:
    encoder = Encoder(redact=lambda text: "***")
    assert 2 == len(encoder.convert({"one": 1, "two": 2}))
