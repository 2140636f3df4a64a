"""Storing a result and reading it back: files, handles, owners, lines and pages."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.errors import ResultError, ResultExpired, ResultNotFound, StorageFull
from output.store_desk import ME, TTL, Desk, corpus_items, files_of, joined, lines_of, read_all, small_blocks
from output.store_faults import fault

HANDLES = corpus_items("result_handles")
TEXTS = st.text(st.sampled_from("ab\n\r\x0b\x0c\x1c\x85\u2028é\U0001f642"), max_size=120)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "tmp")


@pytest.mark.scenario("000-64")
def test_the_content_is_stored_under_the_handle_s_name(desk: Desk) -> None:
    stored = desk.put("one\ntwo\n")
    assert desk.file(stored.handle, ".txt").read_bytes() == b"one\ntwo\n"


@pytest.mark.scenario("000-65")
def test_the_meta_file_tells_what_is_stored(desk: Desk) -> None:
    stored = desk.put("one\n", "two\n", "é", tool="web.fetch")
    meta = json.loads(desk.file(stored.handle, ".meta.json").read_text())
    now = datetime.fromtimestamp(desk.clock(), UTC)
    assert {key: meta[key] for key in ("handle", "total_lines", "size_bytes", "tool", "owner")} == {
        "handle": stored.handle,
        "total_lines": 3,
        "size_bytes": 10,
        "tool": "web.fetch",
        "owner": ME,
    }
    assert now == datetime.fromisoformat(meta["created_at"]) == stored.created_at
    assert (stored.total_lines, stored.size_bytes, stored.tool) == (3, 10, "web.fetch")


def test_nothing_but_the_three_files_of_a_result_is_left(desk: Desk) -> None:
    stored = desk.put("x")
    assert files_of(stored) == desk.names()


def test_the_directory_is_not_made_before_the_first_result(desk: Desk) -> None:
    with pytest.raises(ResultNotFound):
        desk.page("a" * 22)
    assert not desk.path.exists()


def test_handles_are_unguessable_and_different(desk: Desk) -> None:
    handles = {desk.put("x").handle for _ in range(20)}
    assert len(handles) == 20
    assert all(len(handle) >= 22 for handle in handles)


@fault("S06")
def test_a_handle_that_is_taken_is_never_written_over(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = iter(["a" * 22, "a" * 22, "b" * 22])
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: next(tokens))
    first, second = desk.put("first"), desk.put("second")
    assert (first.handle, second.handle) == ("a" * 22, "b" * 22)
    assert read_all(desk, first.handle) == b"first"


def test_handles_that_are_all_taken_are_given_up(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda _size: "a" * 22)
    first = desk.put("first")
    with pytest.raises(ResultError, match="no free handle was found"):
        desk.put("second")
    assert read_all(desk, first.handle) == b"first"


# ---------------------------------------------------------------- who may read


@pytest.mark.parametrize("item", HANDLES, ids=[item["id"] for item in HANDLES])
def test_whatever_is_no_handle_is_not_found(desk: Desk, item: dict[str, str]) -> None:
    desk.put("x")
    handle: Any = item["input"] if "input" in item else eval(item.get("gen") or item["py"])
    with pytest.raises(ResultNotFound, match=r"^result '.{0,300}' not found$") as caught:
        desk.page(handle)
    assert str(caught.value).isascii()


def test_another_owner_s_handle_reads_like_an_unknown_one(desk: Desk) -> None:
    theirs = desk.put("secret", owner="someone else").handle
    unknown = "u" * 22
    texts: list[str] = []
    for handle in (theirs, unknown):
        for read in (desk.page, lambda handle: read_all(desk, handle)):
            with pytest.raises(ResultNotFound) as caught:
                read(handle)
            texts.append(str(caught.value).replace(handle, "HANDLE"))
    assert {"result 'HANDLE' not found"} == set(texts)


def test_a_handle_with_a_newline_after_it_is_another_handle(desk: Desk) -> None:
    stored = desk.put("x")
    with pytest.raises(ResultNotFound):
        desk.page(stored.handle + "\n")


def test_an_expired_result_is_said_to_have_expired(desk: Desk) -> None:
    stored = desk.put("x")
    desk.clock.forward(TTL + 1)
    for read in (desk.page, lambda handle: desk.store.describe(handle, owner=ME)):
        with pytest.raises(ResultExpired, match="has expired"):
            read(stored.handle)


def test_an_expired_result_is_still_said_to_have_expired_once_it_is_removed(desk: Desk) -> None:
    stored = desk.put("x")
    desk.clock.forward(TTL + 1)
    desk.put("y")
    assert not desk.file(stored.handle, ".txt").exists()
    with pytest.raises(ResultExpired):
        desk.page(stored.handle)
    with pytest.raises(ResultNotFound):
        desk.store.page(stored.handle, owner="someone else")


def test_a_result_s_description_is_what_was_stored(desk: Desk) -> None:
    stored = desk.put("x\ny")
    assert stored == desk.store.describe(stored.handle, owner=ME)


def test_an_owner_s_name_that_does_not_fit_is_refused_before_anything_is_written(desk: Desk) -> None:
    with pytest.raises(ValueError, match="longer than 1024 bytes"):
        desk.put("x", owner="o" * 1025)
    assert not desk.path.exists()


def test_a_strange_name_of_a_tool_does_not_lose_the_result(desk: Desk) -> None:
    stored = desk.put("x", tool="t\udcff" * 1000)
    assert desk.page(stored.handle).lines == ("x",)


# ---------------------------------------------------------------- what is stored


@given(st.lists(st.binary(max_size=40) | st.text(max_size=20)))
def test_what_is_read_is_what_was_stored_however_it_was_cut(chunks: list[bytes | str]) -> None:
    with tempfile.TemporaryDirectory() as directory, small_blocks():
        desk = Desk(Path(directory) / "tmp")
        stored = desk.put(*chunks)
        expected = b"".join(chunk.encode() if isinstance(chunk, str) else chunk for chunk in chunks)
        assert expected == read_all(desk, stored.handle)
        assert len(expected) == stored.size_bytes


def test_a_text_given_instead_of_chunks_is_one_chunk(desk: Desk) -> None:
    data: Any = b"abc"
    assert read_all(desk, desk.store.put(data, tool="t", owner=ME).handle) == b"abc"
    assert read_all(desk, desk.store.put("abc", tool="t", owner=ME).handle) == b"abc"


def test_a_lone_surrogate_is_stored_as_its_escape(desk: Desk) -> None:
    assert desk.page(desk.put("a\ud800b").handle).lines == ("a\\ud800b",)


def test_bytes_that_are_not_text_are_replaced_when_read(desk: Desk) -> None:
    assert desk.page(desk.put(b"a\xffb").handle).lines == ("a\ufffdb",)


def test_a_source_that_fails_leaves_nothing_and_its_error_comes_through(desk: Desk) -> None:
    def source() -> Iterator[str]:
        yield "x" * 2_000_000
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network is gone"):
        desk.store.put(source(), tool="t", owner=ME)
    assert desk.names() == set()


def test_a_result_larger_than_all_may_be_is_refused_while_it_comes(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_total_bytes=3_000_000)
    taken: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield b"x" * 100_000

    with pytest.raises(StorageFull, match="larger than all results together"):
        desk.store.put(endless(), tool="t", owner=ME)
    assert len(taken) < 60
    assert desk.names() == set()


# ---------------------------------------------------------------- lines and pages


@pytest.mark.scenario("001-61")
@given(TEXTS, st.integers(1, 12), st.integers(1, 12))
def test_a_page_is_a_slice_of_the_lines_that_only_newlines_end(text: str, offset: int, limit: int) -> None:
    lines = lines_of(text)
    with tempfile.TemporaryDirectory() as directory, small_blocks():
        desk = Desk(Path(directory) / "tmp")
        page = desk.page(desk.put(text).handle, offset=offset, limit=limit)
    assert tuple(lines[offset - 1 : offset - 1 + limit]) == page.lines
    assert (len(lines), len(page.lines), offset) == (page.total_lines, page.returned, page.offset)
    assert (offset - 1 + limit < len(lines)) == page.has_more


def test_the_index_is_the_same_on_every_machine(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = desk.put("a\nb\nc\n")
    assert desk.file(stored.handle, ".idx").read_bytes() == (3).to_bytes(8, "little")
    monkeypatch.setattr("sys.byteorder", "big" if sys.byteorder == "little" else "little")
    assert desk.page(desk.put("a\nb\nc\n").handle, offset=2).lines == ("b", "c")


@fault("S10")
@pytest.mark.parametrize("separator", ["\u2028", "\x0b", "\x0c", "\x1c", "\x85", "\r"])
def test_only_a_newline_splits_lines(desk: Desk, separator: str) -> None:
    text = f"a{separator}b\nc{separator}d"
    assert desk.page(desk.put(text).handle).lines == (f"a{separator}b", f"c{separator}d")


def test_the_carriage_return_before_a_newline_is_no_part_of_the_line(desk: Desk) -> None:
    assert desk.page(desk.put("a\r\nb\r\n\r\nc\r").handle).lines == ("a", "b", "", "c")


def test_without_more_a_page_has_the_first_hundred_lines(desk: Desk) -> None:
    page = desk.page(desk.put(*(f"line {number}\n" for number in range(1, 501))).handle)
    assert (page.lines[0], page.lines[-1], page.returned) == ("line 1", "line 100", 100)
    assert (page.total_lines, page.offset, page.has_more, page.note) == (500, 1, True, "")


def test_a_page_may_begin_anywhere(desk: Desk) -> None:
    page = desk.page(desk.put(*(f"line {number}\n" for number in range(1, 501))).handle, offset=101, limit=50)
    assert (page.lines[0], page.lines[-1], page.returned) == ("line 101", "line 150", 50)


def test_the_last_page_has_no_more(desk: Desk) -> None:
    page = desk.page(desk.put("a\nb\nc").handle, offset=3)
    assert (page.lines, page.has_more, page.note) == (("c",), False, "")


def test_an_offset_after_the_end_says_so(desk: Desk) -> None:
    page = desk.page(desk.put("a\nb\n").handle, offset=10**12)
    assert (page.lines, page.returned, page.has_more) == ((), 0, False)
    assert page.note == "offset 1000000000000 is after the last line, 2"


def test_an_empty_result_has_no_lines(desk: Desk) -> None:
    stored = desk.put()
    page = desk.page(stored.handle)
    assert (stored.total_lines, page.lines, page.total_lines, page.has_more) == (0, (), 0, False)
    assert page.note == "the result is empty"


def test_a_page_is_cut_to_whole_lines_and_says_where_to_read_on(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_page_bytes=2000)
    handle = desk.put(*(f"{number:099}\n" for number in range(50))).handle
    first = desk.page(handle)
    assert (first.returned, first.has_more) == (20, True)
    assert first.note == "the page is full; read on with offset=21"
    pages = [first, desk.page(handle, offset=21), desk.page(handle, offset=41)]
    assert [f"{number:099}" for number in range(50)] == joined(pages)
    assert not pages[-1].has_more


def test_a_huge_limit_gives_a_full_page_and_says_so(desk: Desk) -> None:
    page = desk.page(desk.put("\n" * 20_000).handle, limit=10**9)
    assert (page.returned, page.has_more, page.note) == (10_000, True, "the page is full; read on with offset=10001")


@pytest.mark.parametrize("unit", ["x", "é", "\U0001f642"])
def test_a_line_too_long_for_a_page_is_read_on_by_bytes(tmp_path: Path, unit: str) -> None:
    desk = Desk(tmp_path / "tmp", max_page_bytes=1025)
    line = unit * 2000
    handle = desk.put("short\n", line, "\nlast").handle
    page = desk.page(handle, offset=2)
    text = page.lines[0]
    while page.note:
        start = len(text.encode()) + 1
        assert page.note.endswith(f"read on with offset=2, from_byte={start}")
        assert (page.returned, page.has_more, len(page.lines[0].encode()) > 1020) == (1, True, True)
        page = desk.page(handle, offset=2, from_byte=start)
        text += page.lines[0]
    assert line == text
    assert (page.lines[1:], page.has_more) == (("last",), False)


def test_a_long_line_is_not_begun_at_the_end_of_a_page(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_page_bytes=1024)
    handle = desk.put("short\n", "x" * 5000, "\nlast").handle
    page = desk.page(handle)
    assert (page.lines, page.note) == (("short",), "the page is full; read on with offset=2")


def test_a_line_that_just_fits_is_not_called_cut(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_page_bytes=1024)
    for text in ("x" * 1024, "x" * 1024 + "\n"):
        page = desk.page(desk.put(text).handle)
        assert (page.lines, page.has_more, page.note) == (("x" * 1024,), False, "")


@fault("S09")
def test_one_line_of_a_hundred_megabytes_gives_its_first_bytes(desk: Desk) -> None:
    stored = desk.put(*(b"x" * 1_000_000 for _ in range(100)))
    page = desk.page(stored.handle)
    assert stored.total_lines == 1
    assert (page.lines, page.has_more) == (("x" * 50_000,), True)
    assert page.note == ("bytes 1 to 50,000 of 100,000,000 of line 1; read on with offset=1, from_byte=50001")


def test_reading_on_after_the_end_of_a_line_is_refused(desk: Desk) -> None:
    handle = desk.put("abc\ndef\n").handle
    assert desk.page(handle, from_byte=3).lines == ("c", "def")
    with pytest.raises(ValueError, match=r"from_byte 4 is after the end of line 1 \(3 bytes\)"):
        desk.page(handle, from_byte=4)


@pytest.mark.parametrize(
    ("query", "error", "text"),
    [
        ({"offset": 0}, ValueError, r"^offset must be >= 1 \(1-indexed\), got 0$"),
        ({"offset": -1}, ValueError, r"^offset must be >= 1 \(1-indexed\), got -1$"),
        ({"limit": 0}, ValueError, r"^limit must be >= 1, got 0$"),
        ({"limit": -5}, ValueError, r"^limit must be >= 1, got -5$"),
        ({"offset": 1.5}, TypeError, "^offset must be a whole number, got float$"),
        ({"offset": "1"}, TypeError, "^offset must be a whole number, got str$"),
        ({"offset": True}, TypeError, "^offset must be a whole number, got bool$"),
        ({"limit": None}, TypeError, "^limit must be a whole number, got NoneType$"),
        ({"offset": 10**5000}, ValueError, "^offset is too large$"),
        ({"search": 1}, TypeError, "^search must be text, got int$"),
        ({"search": "x", "fuzzy": "yes"}, TypeError, "^fuzzy must be True or False, got str$"),
        ({"search": "x", "from_byte": 2}, ValueError, "without search"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(
    desk: Desk, query: dict[str, Any], error: type[Exception], text: str
) -> None:
    handle = desk.put("x").handle
    with pytest.raises(error, match=text):
        desk.page(handle, **query)
