"""Only plain data crosses, counted and copied."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import IntEnum
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.errors import DataTooLarge, NotPlainData
from ot.runtime.project_proxy import ProjectPath
from ot.values import plain
from ot.values.plain import MAX_DEPTH, plain_arguments, plain_copy, plain_data

KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.tuples(st.text(), st.integers()))
SCALARS = st.one_of(KEYS, st.floats(allow_nan=False), st.binary(), st.datetimes(), st.dates(), st.timedeltas())
PLAIN = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.tuples(inner, inner),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(KEYS, max_size=4),
        st.frozensets(KEYS, max_size=4),
    ),
    max_leaves=20,
)


def copy(value: Any, **limits: int) -> Any:
    return plain_copy(value, where="here", **{"max_bytes": 1 << 20, **limits})


def mutable_ids(value: Any) -> set[int]:
    inner: list[Any] = (
        list(value.values()) if type(value) is dict else list(value) if type(value) in (list, tuple) else []
    )
    own = {id(value)} if type(value) in (list, dict, set) else set[int]()
    return own.union(*(mutable_ids(item) for item in inner))


@given(PLAIN)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value: Any) -> None:
    made = copy(value)
    assert value == made
    assert type(value) is type(made)
    assert mutable_ids(value).isdisjoint(mutable_ids(made))


class Text(str):
    """Text that pretends."""

    __slots__ = ()


class Level(IntEnum):
    ONE = 1


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Text("x"),
        Level.ONE,
        Point(1, 2),
        OrderedDict(a=1),
        print,
        int,
        lambda: 1,
        iter([]),
        range(3),
        ValueError("x"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"a": (v,)}], ids=["bare", "list", "deep"])
def test_anything_live_or_disguised_is_refused(value: Any, wrap: Any) -> None:
    with pytest.raises(NotPlainData, match="is not plain data"):
        copy(wrap(value))


def test_a_path_crosses_as_text() -> None:
    assert copy([PurePosixPath("/a/b"), Path("/c")]) == ["/a/b", "/c"]


def test_the_other_plain_types_cross_as_they_are() -> None:
    values = [Decimal("1.5"), datetime.now(UTC), date(2026, 1, 2), time(3, 4), timedelta(1), b"\xff", 1 << 100]
    assert values == copy(values)


def nested(depth: int, wrap: Any = lambda v: [v]) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = wrap(value)
    return value


def test_depth_is_bounded_and_so_is_a_circle() -> None:
    assert copy(nested(MAX_DEPTH))
    with pytest.raises(NotPlainData, match="levels deep"):
        copy(nested(MAX_DEPTH + 1))
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(NotPlainData, match="levels deep"):
        copy(circle)


def test_size_is_bounded_and_shared_parts_count_each_time() -> None:
    text = "x" * 1000
    assert copy([text], max_bytes=1100)
    with pytest.raises(DataTooLarge):
        copy([text, text], max_bytes=1100)
    with pytest.raises(DataTooLarge):
        copy(nested(20, lambda v: [v] * 10), max_nodes=10_000)
    with pytest.raises(DataTooLarge):
        copy(1 << 10_000_000)


@pytest.mark.anyio
async def test_the_text_of_a_refusal_names_the_argument() -> None:
    with pytest.raises(NotPlainData, match=r"t\.f\(\) argument 2: object is not plain data"):
        await plain_arguments("t.f", [1, object()], {}, max_bytes=1000)
    with pytest.raises(NotPlainData, match=r"t\.f\(\) argument 'query': "):
        await plain_arguments("t.f", [], {"query": print}, max_bytes=1000)
    with pytest.raises(DataTooLarge, match=r"t\.f\(\) argument 1: .*limits\.value_bytes"):
        await plain_arguments("t.f", ["x" * 1001], {}, max_bytes=1000)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "threads"), [([1] * 1000, 0), ([1] * 100_000, 1), ([[1] * 1000] * 1000, 1), ("x" * 10_000_000, 0)]
)
async def test_large_values_are_copied_off_the_event_loop(
    value: Any, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[int] = []
    original = anyio.to_thread.run_sync

    async def watched(function: Any, **options: Any) -> Any:
        used.append(1)
        return await original(function, **options)

    monkeypatch.setattr(plain.anyio.to_thread, "run_sync", watched)
    copied, _ = await plain_data(value, where="here", max_bytes=1 << 30)
    assert value == copied
    assert threads == len(used)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value",
    ["é" * 500, ["some text of a line"] * 300, [{"name": "a" * 20, "size": 12345, "ok": True}] * 200, [1.25, 17] * 500],
)
async def test_the_characters_of_a_value_are_those_of_its_text_or_nearly_its_json(value: Any) -> None:
    _, chars = await plain_data(value, where="here", max_bytes=1 << 30)
    written = len(value) if isinstance(value, str) else len(json.dumps(value, separators=(",", ":")))
    assert 0.75 * written <= chars <= 1.35 * written
    assert chars == written or not isinstance(value, str)


def test_a_project_path_is_known_to_stay_a_path_only_on_its_way_in() -> None:
    with pytest.raises(NotPlainData):
        copy(ProjectPath("/a"))
