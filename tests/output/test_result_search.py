"""Searching and paging a stored result: patterns, text and likeness, at the cost of what is shown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.output import result_pages, result_search
from output.store_desk import Desk, corpus_items, lines_of, small_blocks
from output.store_faults import fault
from pace import effort

QUERIES = corpus_items("result_query")
REFUSED = {f"result_query-{number:02}" for number in (1, 2, 3, 4, 5, 7, 8, 10, 11, 12, 16, 17, 18, 19, 23, 24)}
PATTERNS = [
    "a",
    "ab",
    "a$",
    "^a",
    "^$",
    "b*",
    "$",
    "[^a]",
    "a|b",
    "(?i)A",
    ".",
    "a.b",
    r"\W$",
    r"\ba\b",
    "(?s)a.",
    "é+",
    r"\r",
    r"(?:a|b)+$",
]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "tmp")


@pytest.mark.parametrize("item", QUERIES, ids=[item["id"] for item in QUERIES])
def test_a_bad_query_is_answered_or_refused_in_time(desk: Desk, item: dict[str, Any]) -> None:
    content = eval(item["content_gen"]) if "content_gen" in item else "a line\nanother (line)\n" * 1000
    query = item.get("args") or {name: eval(text) for name, text in item["args_gen"].items()}
    handle = desk.put(content).handle
    with effort() as spent:
        if item["id"] in REFUSED:
            with pytest.raises((TypeError, ValueError)) as caught:
                desk.page(handle, **query)
            assert len(str(caught.value)) < 400
        else:
            assert desk.page(handle, **query).returned <= 10_000
    assert spent.loops < 400 * (2 if item.get("expect") == "<=2 s" else 1)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?=a)a", "unsupported: look-around"),
        ("(?<!a)b", "unsupported: look-around"),
        (r"(a)\1", "unsupported: back-reference"),
        ("a{1000}{1000}", "too large"),
        ("(a{100}){100}", "too large"),
        ("a|" * 100_000, "too large"),
        (r"\pL{200}", "too large"),
        ("(", r"not a valid RE2 pattern: missing \): \("),
        (r"\Aab", r"cannot use \\A: it looks at one line at a time"),
        (r"a\\\z", r"cannot use \\z"),
        (r"\C", r"cannot use \\C"),
        ("(?i-m)^a", r"cannot turn off \(\?m\)"),
        ("a\ud800+", "surrogates not allowed"),
    ],
)
def test_a_pattern_is_refused_with_the_reason(desk: Desk, pattern: str, text: str) -> None:
    handle = desk.put("ab\n").handle
    with pytest.raises(ValueError, match=text):
        desk.page(handle, search=pattern)


def test_only_matching_lines_are_returned_with_their_numbers(desk: Desk) -> None:
    handle = desk.put("ok\nerror one\nok\nan error\n").handle
    for pattern in ("error", "err.r"):
        page = desk.page(handle, search=pattern)
        assert (page.lines, page.numbers, page.total_lines) == (("error one", "an error"), (2, 4), 4)
        assert (page.returned, page.offset, page.has_more) == (2, 1, False)


@pytest.mark.parametrize("pattern", ["even", "e[v]en"])
def test_offset_and_limit_count_matching_lines(desk: Desk, pattern: str) -> None:
    handle = desk.put(*(f"{number} {'odd' if number % 2 else 'even'}\n" for number in range(1, 101))).handle
    page = desk.page(handle, search=pattern, offset=11, limit=5)
    assert page.lines == ("22 even", "24 even", "26 even", "28 even", "30 even")
    assert (page.has_more, page.note) == (True, "")
    last = desk.page(handle, search=pattern, offset=46, limit=5)
    assert (last.returned, last.has_more) == (5, False)
    assert desk.page(handle, search=pattern, offset=51).returned == 0


@given(st.text(st.sampled_from("ab \n\réA-"), max_size=100), st.sampled_from(PATTERNS))
def test_a_search_over_blocks_finds_what_a_search_of_each_line_finds(text: str, pattern: str) -> None:
    lines = lines_of(text)
    expected = [(n, line) for n, line in enumerate(lines, 1) if re.search(pattern, line, re.ASCII)]
    with tempfile.TemporaryDirectory() as directory, small_blocks():
        desk = Desk(Path(directory) / "tmp")
        page = desk.page(desk.put(text).handle, search=pattern)
    assert expected == list(zip(page.numbers, page.lines, strict=True))


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from(["needle", "nee[d]le", "needle.*"]))
def test_a_match_in_a_long_line_is_found_wherever_the_pieces_meet(before: int, after: int, pattern: str) -> None:
    text = f"first\n{'.' * before}needle{'.' * after}\nlast needle\n"
    with tempfile.TemporaryDirectory() as directory, small_blocks(long_line=64, overlap=16):
        desk = Desk(Path(directory) / "tmp")
        page = desk.page(desk.put(text).handle, search=pattern)
    assert page.numbers == (2, 3)


@pytest.mark.parametrize("pattern", ["^[.]", "[.]$", r"[^x]$", r"\Bneedle"])
def test_the_borders_of_pieces_are_not_taken_for_those_of_the_line(pattern: str, tmp_path: Path) -> None:
    with small_blocks(long_line=64, overlap=16):
        desk = Desk(tmp_path / "tmp")
        handle = desk.put("x" + "." * 500 + "x\n").handle
        assert desk.page(handle, search=pattern).numbers == ()
        assert desk.page(handle, search="^x.*").numbers == (1,)


def test_a_long_line_is_shown_from_the_match_on(desk: Desk) -> None:
    handle = desk.put("x" * 3_000_000, "needle", "y" * 100, "\nneedle\n").handle
    for pattern in ("needle", "need[l]e"):
        page = desk.page(handle, search=pattern)
        assert page.lines == ("needle" + "y" * 100,)
        assert page.note == "bytes 3,000,001 to 3,000,106 of 3,000,106 of line 1"
        assert (page.numbers, page.has_more) == ((1,), True)
        assert desk.page(handle, search=pattern, offset=2).lines == ("needle",)


def test_a_long_line_that_was_found_is_read_on_without_the_search(desk: Desk) -> None:
    handle = desk.put("needle", "x" * 100_000).handle
    page = desk.page(handle, search="needle")
    assert page.note == (
        "bytes 1 to 50,000 of 100,006 of line 1; read on with offset=1, from_byte=50001 and without search"
    )
    assert (page.has_more, page.numbers) == (True, (1,))


def test_a_page_of_matches_is_cut_to_its_size(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "tmp", max_page_bytes=1024)
    handle = desk.put(*(f"{number:099}\n" for number in range(50))).handle
    page = desk.page(handle, search="0")
    assert (page.returned, page.has_more, page.note) == (10, True, "the page is full; read on with offset=11")
    assert desk.page(handle, search="0", offset=11).numbers[0] == 11


def test_a_search_ends_when_its_time_is_up_and_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = desk.put("x\n" * 10).handle
    monkeypatch.setattr(result_search, "SEARCH_SECONDS", -1.0)
    page = desk.page(handle, search="x")
    assert (page.lines, page.has_more) == ((), True)
    assert "stopped" in page.note
    assert "at line 1;" in page.note


def test_plain_text_needs_no_engine_for_patterns(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    handle = desk.put("a-b c\n").handle
    assert desk.page(handle, search="-b c").returned == 1
    with pytest.raises(ValueError, match="plain text only: google-re2"):
        desk.page(handle, search="a.b")


def test_a_newline_in_plain_text_matches_nothing(desk: Desk) -> None:
    handle = desk.put("a\nb\n").handle
    assert desk.page(handle, search="a\nb").returned == 0
    assert desk.page(handle, search=r"a\nb").returned == 0


def test_patterns_of_strangers_do_not_stay_in_memory(desk: Desk) -> None:
    import re2

    desk.page(desk.put("x").handle, search="x+")
    assert re2._Regexp._make.cache_info().currsize == 0


# ---------------------------------------------------------------- likeness


def test_a_fuzzy_search_finds_similar_lines_best_first(desk: Desk) -> None:
    handle = desk.put("nothing here\nthe cnofig\nthe CONFIGURATION file\nconfg\nunrelated text\n").handle
    page = desk.page(handle, search="config", fuzzy=True)
    assert (page.lines, page.numbers) == (("the CONFIGURATION file", "confg", "the cnofig"), (3, 4, 2))
    assert (page.total_lines, page.has_more) == (5, False)


def test_a_short_line_is_not_like_everything_that_contains_it(desk: Desk) -> None:
    assert desk.page(desk.put("c\n\nco\nconfig\n").handle, search="config", fuzzy=True).lines == ("config",)


def test_offset_and_limit_count_similar_lines(desk: Desk) -> None:
    handle = desk.put("config\n" * 20).handle
    page = desk.page(handle, search="config", fuzzy=True, offset=6, limit=5)
    assert (page.numbers, page.has_more) == ((6, 7, 8, 9, 10), True)


def test_an_empty_search_is_no_search(desk: Desk) -> None:
    assert desk.page(desk.put("a\nb\n").handle, search="", fuzzy=True).lines == ("a", "b")


def test_a_fuzzy_search_keeps_the_best_of_many(desk: Desk) -> None:
    handle = desk.put("confg\n" * 30_000, "config\n").handle
    page = desk.page(handle, search="config", fuzzy=True)
    assert (page.lines[0], page.numbers[0]) == ("config", 30_001)
    last = desk.page(handle, search="config", fuzzy=True, offset=901)
    assert (last.returned, last.has_more, last.note) == (100, False, "a fuzzy search finds at most 1,000 lines")


def test_a_fuzzy_search_of_many_different_lines_is_quick(desk: Desk) -> None:
    handle = desk.put(*(f"the confguration of line {number} is here\n" for number in range(200_000))).handle
    with effort() as spent:
        page = desk.page(handle, search="configuration", fuzzy=True)
    assert spent.loops < 800
    assert page.returned == 100


def test_a_fuzzy_search_ends_when_its_time_is_up_and_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = desk.put("config\n" * 10).handle
    monkeypatch.setattr(result_pages, "FUZZY_SECONDS", -1.0)
    page = desk.page(handle, search="config", fuzzy=True)
    assert (page.lines, page.note) == ((), "only the lines before 1 were compared")


def test_a_long_text_is_not_searched_for_by_likeness(desk: Desk) -> None:
    handle = desk.put("x").handle
    with pytest.raises(ValueError, match="at most 100 characters, got 101"):
        desk.page(handle, search="x" * 101, fuzzy=True)


def test_a_fuzzy_search_looks_at_the_start_of_a_long_line_once(desk: Desk) -> None:
    handle = desk.put("config", "." * 3_000_000, "config\nconfig\n").handle
    assert desk.page(handle, search="config", fuzzy=True, offset=2).numbers == (2,)


def measure(directory: Path, lines: int, timeout: float) -> dict[str, float]:
    script = Path(__file__).parent / "store_large.py"
    done = subprocess.run(
        [sys.executable, str(script), str(directory), str(lines)],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(report: dict[str, float]) -> None:
    assert report["store"] <= 4000
    assert report["first"] <= 20
    assert report["last"] <= 40
    assert report["fuzzy"] <= 1200
    assert report["megabytes"] <= 64


@fault("S08")
def test_a_hundred_megabytes_are_stored_paged_and_searched_within_bounds(tmp_path: Path) -> None:
    report = measure(tmp_path / "tmp", 1_000_000, 100)
    check(report)
    assert report["search"] <= 200
    assert report["hostile"] <= 400


@fault("S08")
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_gigabyte_is_stored_and_paged_within_bounds(tmp_path: Path) -> None:
    check(measure(tmp_path / "tmp", 10_000_000, 500))
