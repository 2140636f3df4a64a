"""Parts of stored JSON values, by path: exact, and at the price of the part."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ot.output import json_reader
from ot.output.result_blobs import Form
from ot.output.result_store import ResultStore
from ot.output.result_values import Step, join, parse_path
from ot.output.stored_text import stored_text
from ot_sdk.replies import JsonPieces
from ot_sdk.tagged import Encoder
from output.memory_blobs import MemoryBlobs
from output.store_desk import ME, PLENTY, file_store
from pace import TURNS

MOST = 1 << 20
ROWS = [{"id": number, "name": f"n{number}", "tags": ["a", number]} for number in range(300)]
API = {"count": 300, "results": ROWS, "next": None, "odd.key": {"é\n": 1.5}}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=4), inner, max_size=5),
    max_leaves=20,
)  # fmt: skip

STEPS = st.one_of(
    st.text(min_size=1, max_size=12),
    st.integers(-1000, 1000),
    st.builds(slice, st.none() | st.integers(-99, 99), st.none() | st.integers(-99, 99)),
)


class Shelf:
    """One value, stored in one form."""

    def __init__(self, text: bytes | str, form: Form, store: ResultStore | None = None) -> None:
        self.store = store or ResultStore(
            cache(lambda _: MemoryBlobs()), ttl=60, max_total_bytes=PLENTY, max_page_bytes=50_000
        )
        self.handle = self.store.put([text], tool="t", owner=ME, form=form).handle

    def __call__(self, path: str, max_bytes: int = MOST) -> Any:
        return self.store.value(self.handle, owner=ME, path=path, max_bytes=max_bytes)

    def outline(self, path: str = "") -> dict[str, Any]:
        return self.store.outline(self.handle, owner=ME, path=path)


def by_server(value: Any) -> Shelf:
    if not isinstance(value, list | dict):
        return as_text(value)  # as the server does
    return Shelf(stored_text(value, None), "json")


def by_worker(value: Any) -> Shelf:
    return Shelf(b"".join(JsonPieces(Encoder).of(value)), "tagged")


def as_text(value: Any) -> Shelf:
    return Shelf(json.dumps(value, indent=1), "text")


WAYS: list[Callable[[Any], Shelf]] = [by_server, by_worker, as_text]
ways = pytest.mark.parametrize("way", WAYS)


@ways
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("count", 300),
        ("next", None),
        ("results[0]", ROWS[0]),
        ("results[-1].name", "n299"),
        ("results[298:]", ROWS[298:]),
        ("results[10:12].tags[1]", [10, 11]),
        ("results[-3:-1].id", [297, 298]),
        ("results.7.id", 7),
        ("['odd.key']", API["odd.key"]),
        ("['odd.key'].é\n", 1.5),
        ("results[500:600]", []),
        (".", API),
    ],
)
def test_a_path_leads_to_the_part_itself(way: Callable[[Any], Shelf], path: str, value: Any) -> None:
    assert value == way(API)(path)


@ways
def test_elements_of_a_stored_list_are_found_from_both_ends(way: Callable[[Any], Shelf]) -> None:
    shelf = way(ROWS)
    assert ROWS[5] == shelf("[5]")
    assert ROWS[0:3] == shelf("[0:3]")
    assert ROWS[-2:] == shelf("[-2:]")
    assert [row["id"] for row in ROWS] == shelf("[:].id")
    assert ROWS == shelf(".")


@settings(max_examples=150)
@given(value=JSON, way=st.sampled_from(WAYS), window=st.sampled_from([32, 64, 1 << 20]))
def test_every_part_of_every_value_is_found_whatever_the_window(
    value: Any, way: Callable[[Any], Shelf], window: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_reader, "WINDOW", window)
        patch.setattr(json_reader, "PIECE", window // 2)
        shelf = way(value)
        assert value == shelf(".")
        if isinstance(value, list):
            assert [shelf(f"[{place}]") for place in range(len(value))] == value
            assert value[1:3] == shelf("[1:3]")
            assert len(value) == shelf.outline()["length"]
        if isinstance(value, dict):
            for key in filter(None, value):
                quoted = key.replace("\\", "\\\\").replace('"', '\\"')
                assert value[key] == shelf(f'["{quoted}"]')
            assert list(value)[:50] == list(shelf.outline()["keys"])


def test_a_worker_s_types_come_back_as_they_were() -> None:
    day = date(2026, 1, 2)
    shelf = by_worker({"when": day, "raw": b"\0\1", "pair": (1, 2), "seen": {3}, "odd": {1: "one", None: "none"}})
    assert day == shelf("when")
    assert shelf("raw") == b"\0\1"
    assert shelf("pair") == (1, 2)
    assert shelf("pair[1]") == 2
    assert shelf("seen") == {3}
    assert shelf("odd") == {1: "one", None: "none"}
    assert shelf("odd.1") == "one"
    assert {"1": "str", "None": "str"} == shelf.outline("odd")["keys"]


@pytest.mark.parametrize("value", [(1, "b", None), ({"a": 1}, {"a": 2}), {1, 2, 3}, {(1, 2): "x", 5: "y"}])
def test_a_worker_s_whole_value_may_be_of_any_plain_type(value: Any) -> None:
    shelf = by_worker(value)
    assert value == shelf(".")
    assert len(value) == shelf.outline()["length"]


def test_lines_of_json_are_a_list() -> None:
    shelf = Shelf("".join(json.dumps(row) + "\n" for row in ROWS), "text")
    assert ROWS[7] == shelf("[7]")
    assert ROWS[-1] == shelf("[-1]")
    assert [3, 4] == shelf("[3:5].id")
    assert ROWS == shelf(".")
    assert shelf.outline()["length"] == 300


def test_the_first_of_json_lines_is_one_document_like_the_others() -> None:
    shelf = Shelf('{"name": "a"}\r\n{"name": "b"}\n{"name": "c"}\n', "text")
    assert shelf("[0]") == {"name": "a"}
    assert shelf("[0].name") == "a"
    assert shelf("[:2].name") == ["a", "b"]
    assert shelf("[-3].name") == "a"
    assert shelf.outline("[0]")["keys"] == {"name": "str"}
    assert shelf.outline()["keys_of_first"] == ["name"]


@pytest.mark.parametrize("odd", ["", "  ", "10 apples", '{"a":', "}", "1,", "2 3"])
def test_a_line_that_is_no_document_is_never_read_as_one(odd: str) -> None:
    shelf = Shelf(f"1\n2\n{odd}\n4\n", "text")
    assert shelf("[:2]") == [1, 2]
    assert shelf("[3]") == 4
    for path in ("[2]", "[1:]", "."):
        with pytest.raises(ValueError, match=r"not JSON at byte 5"):
            shelf(path)


def test_a_large_number_keeps_its_digits() -> None:
    assert Shelf('{"id": 123456789012345678901234567890}', "text")("id") == 123456789012345678901234567890


@pytest.mark.parametrize("text", ["[1, 2, 3] 4", '{"a": 1, "b": 2} x', "[1, 2,, 3]", "[1, 2, ]", '{"a": 1,}'])
def test_a_value_with_more_behind_it_is_none_in_whatever_pieces(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_reader, "PIECE", 4)
    with pytest.raises(ValueError, match="not JSON"):
        Shelf(text, "text")(".")


# ---------------------------------------------------------------- what leads nowhere


@ways
@pytest.mark.parametrize(
    ("path", "error", "text"),
    [
        ("cuont", KeyError, r"path '.' has no key 'cuont'; there are: count, next, odd.key, results"),
        ("results[300]", IndexError, "path 'results' is a list of 300 items: there is no item 300"),
        ("results[-301]", IndexError, "there is no item -301"),
        ("results.name", LookupError, "path 'results' is a list of 300 items, which has no place for a key"),
        ("count.x", LookupError, "path 'count' is a value of type int, which has no place for a key"),
        ("next[0]", LookupError, "path 'next' is a value of type None, which has no place for a number"),
        ("results[0][1:2]", LookupError, r"path 'results\[0\]' is a dict of 3 keys, which has no place for a slice"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_there_is(
    way: Callable[[Any], Shelf], path: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        way(API)(path)


def test_of_many_keys_the_nearest_are_named() -> None:
    with pytest.raises(KeyError, match=r"user_123.* and 4,980 more") as caught:
        by_server({f"user_{number}": number for number in range(5000)})("usr_123")
    assert len(str(caught.value)) < 500


@ways
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("results", r"'results' is larger than 1,000 bytes.* a list of 300 items; .*path='results\[0:10\]'"),
        (".", r"larger than 1,000 bytes.* a dict of 4 keys; .*path=\"results\""),
        ("results[0:100]", r"larger than 1,000 bytes"),
    ],
)
def test_a_part_too_large_for_a_program_says_how_to_narrow_it(
    way: Callable[[Any], Shelf], path: str, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        way(API)(path, max_bytes=1000)


@pytest.mark.parametrize(
    "text", ["plain words", "", "   \n ", "- yaml: 1", "{'a': 1}", '{"a" 1}', "[1, 2", '"open', "[" * 200_000]
)
def test_a_text_that_is_not_json_is_said_not_to_be(text: str) -> None:
    shelf = Shelf(text, "text")
    for read in (lambda: shelf("a"), lambda: shelf("[9]"), lambda: shelf("."), shelf.outline):
        with pytest.raises((ValueError, LookupError)) as caught:
            read()
        assert len(str(caught.value)) < 300


def test_a_value_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_reader, "SECONDS", -1.0)
    with pytest.raises(ValueError, match="could not be read within"):
        by_server(API)("count")


# ---------------------------------------------------------------- outlines


@ways
def test_an_outline_tells_type_length_and_keys_and_how_to_go_on(way: Callable[[Any], Shelf]) -> None:
    shelf = way(API)
    assert shelf.outline() == {
        "path": ".",
        "type": "dict",
        "length": 4,
        "keys": {"count": "int", "results": "list", "next": "None", "odd.key": "dict"},
        "next": 'read on with path="results"',
    }
    assert shelf.outline("results") == {
        "path": "results",
        "type": "list",
        "length": 300,
        "items": "dict",
        "keys_of_first": ["id", "name", "tags"],
        "next": "read on with path='results[0:10]'",
    }
    assert shelf.outline("results[1].name")["type"] == "str"


def test_an_outline_of_many_keys_names_the_first_and_counts_the_rest() -> None:
    outline = by_server({f"k{number}": 1.5 for number in range(1000)}).outline()
    assert (len(outline["keys"]), outline["more_keys"]) == (50, 950)


def test_an_outline_takes_no_slice() -> None:
    with pytest.raises(ValueError, match="without a slice"):
        by_server(API).outline("results[0:2]")


# ---------------------------------------------------------------- size


def test_values_larger_than_any_window_are_stepped_over() -> None:
    """The common answer of an API: one key holds nearly all, and others stand before and after it."""
    text = "x" * 3_000_000
    value = {"first": 1, "data": {"rows": [{"n": n, "pad": "y" * 100} for n in range(30_000)], "text": text}, "last": 2}
    with tempfile.TemporaryDirectory() as place:
        forms: list[tuple[Form, str]] = [("json", stored_text(value, None)), ("text", json.dumps(value))]
        for form, written in forms:
            shelf = Shelf(written, form, file_store(Path(place)))
            assert shelf("last") == 2
            assert shelf("data.rows[29999].n") == 29_999
            assert [0, 1] == shelf("data.rows[0:2].n")
            assert text == shelf("data.text", max_bytes=4_000_000)
            assert shelf.outline("data.rows")["length"] == 30_000


def test_other_threads_run_while_a_large_value_is_read() -> None:
    shelf = by_server([{"id": number, "pad": "x" * 80} for number in range(200_000)])

    def read() -> None:
        assert len(shelf(".", max_bytes=1 << 25)) == 200_000

    # Beside a plain loop, threads wait for the interpreter and for a core, too.
    assert min(longest_wait(read) - longest_wait(lambda: sum(range(20_000_000))) for _ in range(TURNS)) < 0.25


def longest_wait(act: Callable[[], object]) -> float:
    """Return the longest that another thread had to wait while this one acted."""
    longest = [0.0]
    ended = threading.Event()

    def watch() -> None:
        last = time.monotonic()
        while not ended.wait(0.001):
            longest[0] = max(longest[0], time.monotonic() - last)
            last = time.monotonic()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        act()
    finally:
        ended.set()
        watcher.join()
    return longest[0]


# ---------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        (".", ()),
        ("$", ()),
        ("", ()),
        ("a", ("a",)),
        (".a.b", ("a", "b")),
        ("$.a[0]", ("a", 0)),
        ("$[0]", (0,)),
        ("$ref", ("$ref",)),
        ("a.$ref", ("a", "$ref")),
        ("a.b[0:10]", ("a", "b", slice(0, 10))),
        ("[-1]", (-1,)),
        ("[:].x y", (slice(None, None), "x y")),
        ("a['b.c'][\"d\"]", ("a", "b.c", "d")),
        ("rows.0", ("rows", "0")),
        ("größe", ("größe",)),
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
def test_what_is_not_text_or_too_long_is_refused(path: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="path"):
        parse_path(path)


@given(st.lists(STEPS, max_size=6))
def test_joined_steps_are_read_back(steps: list[Step]) -> None:
    path = "."
    for step in steps:
        path = join(path, step)
    assert tuple(steps) == parse_path(path)
