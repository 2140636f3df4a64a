"""One page of a stored result: some lines, cut to a size, and how to read on."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ot.output.result_lines import LineReader, split_lines
from ot.output.result_search import MAX_FUZZY_RESULTS, LineHit, SearchTime, closest, finder, matching

MAX_PAGE_LINES = 10_000
FUZZY_SECONDS = 1.5
_FARTHEST = 1 << 62
_KEYS = frozenset({"lines", "total_lines", "returned", "offset", "has_more"})


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Some lines of a stored result."""

    lines: tuple[str, ...]
    total_lines: int
    returned: int
    offset: int
    has_more: bool
    note: str = ""
    """Why the page ends where it does, and how to read on; empty when there is nothing to say."""
    numbers: tuple[int, ...] = ()
    """The lines' own numbers, when they were searched for."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """What of a stored result is wanted; every field counts from 1.

    Raises:
        TypeError: A field is not of its type.
        ValueError: A field is out of range.
    """

    offset: int = 1
    limit: int = 100
    search: str = ""
    fuzzy: bool = False
    from_byte: int = 1

    def __post_init__(self) -> None:
        _check_count("offset", self.offset, " (1-indexed)")
        _check_count("limit", self.limit)
        _check_count("from_byte", self.from_byte, " (1-indexed)")
        _check_type("search", self.search, str, "text")
        _check_type("fuzzy", self.fuzzy, bool, "True or False")
        if self.search and self.from_byte > 1:
            raise ValueError("from_byte continues within a line: use it with offset and without search")


class PageReader:
    """Reads pages of one result, none larger than *max_bytes*."""

    def __init__(self, lines: LineReader, max_bytes: int) -> None:
        self._lines = lines
        self._max_bytes = max_bytes

    def page(self, query: PageQuery) -> ResultPage:
        """Return the page that *query* asks for."""
        if query.search:
            return self._closest(query) if query.fuzzy else self._matching(query)
        total = self._lines.total_lines
        if query.offset <= total:
            return self._plain(query)
        note = f"offset {query.offset} is after the last line, {total}" if total else "the result is empty"
        return ResultPage((), total, 0, query.offset, has_more=False, note=note)

    def _plain(self, query: PageQuery) -> ResultPage:
        limit = min(query.limit, MAX_PAGE_LINES)
        start = self._lines.start_of(query.offset)
        end = self._lines.start_of(query.offset + limit)
        if query.from_byte > 1 and query.from_byte > (length := self._lines.length_of(query.offset)):
            raise ValueError(f"from_byte {query.from_byte} is after the end of line {query.offset} ({length} bytes)")
        start += query.from_byte - 1
        data = self._lines.read(start, min(end - start, self._max_bytes))
        if end - start > self._max_bytes:
            whole_lines = data.rfind(b"\n") + 1
            if not whole_lines:
                page = self._part_of_line(query.offset, query.offset, query.from_byte - 1)
                return replace(page, has_more=page.has_more or query.offset < self._lines.total_lines)
            data = data[:whole_lines]
        lines = split_lines(data)
        after = query.offset + len(lines)
        has_more = after <= self._lines.total_lines
        asked_for_more = has_more and len(lines) < query.limit
        note = f"the page is full; read on with offset={after}" if asked_for_more else ""
        return ResultPage(tuple(lines), self._lines.total_lines, len(lines), query.offset, has_more, note)

    def _part_of_line(self, offset: int, number: int, column: int) -> ResultPage:
        length = self._lines.length_of(number)
        data = self._lines.read(self._lines.start_of(number) + column, min(length - column, self._max_bytes))
        # A character that the cut goes through is left for the next page.
        text, used = codecs.utf_8_decode(data, "replace", column + len(data) == length)
        end = column + used
        note = f"bytes {column + 1:,} to {end:,} of {length:,} of line {number:,}" if used < length else ""
        if end < length:
            note += f"; read on with offset={number}, from_byte={end + 1}"
        else:
            text = text.removesuffix("\r")
        return ResultPage((text,), self._lines.total_lines, 1, offset, end < length, note)

    def _matching(self, query: PageQuery) -> ResultPage:
        find = finder(query.search)
        clock = SearchTime()
        page = self._page_hits(query, matching(clock.watch(self._lines.blocks()), find))
        if clock.stopped_at is None:
            return page
        note = (
            f"the search was stopped after {clock.seconds:.1f} s at line {clock.stopped_at:,}; what follows is unknown"
        )
        return _with_note(page, note, has_more=True)

    def _closest(self, query: PageQuery) -> ResultPage:
        found = closest(self._lines.blocks(), query.search, FUZZY_SECONDS)
        page = self._page_hits(query, iter(found.hits))
        if found.stopped_at is not None:
            return _with_note(page, f"only the lines before {found.stopped_at:,} were compared", page.has_more)
        if len(found.hits) == MAX_FUZZY_RESULTS and not page.has_more:
            return _with_note(page, f"a fuzzy search finds at most {MAX_FUZZY_RESULTS:,} lines", has_more=False)
        return page

    def _page_hits(self, query: PageQuery, hits: Iterator[LineHit]) -> ResultPage:
        hits = islice(hits, query.offset - 1, None)
        lines: list[str] = []
        numbers: list[int] = []
        room, note, has_more = self._max_bytes, "", False
        for hit in hits:
            length = self._lines.length_of(hit.number)
            if length >= self._max_bytes and not lines:
                page = self._part_of_line(query.offset, hit.number, hit.column)
                note = page.note + (" and without search" if page.has_more else "")
                has_more = page.has_more or next(hits, None) is not None
                return replace(page, has_more=has_more, note=note, numbers=(hit.number,))
            if length >= room or len(lines) == min(query.limit, MAX_PAGE_LINES):
                is_asked_for = len(lines) == query.limit
                note = "" if is_asked_for else f"the page is full; read on with offset={query.offset + len(lines)}"
                has_more = True
                break
            room -= length + 1
            lines += split_lines(self._lines.read(self._lines.start_of(hit.number), length) + b"\n")
            numbers.append(hit.number)
        total = self._lines.total_lines
        return ResultPage(tuple(lines), total, len(lines), query.offset, has_more, note, tuple(numbers))


def is_page(value: Any) -> bool:
    """Tell a page that a program was given from a part of the stored value, which may be as large as a value may."""
    return type(value) is dict and value.keys() >= _KEYS


def _with_note(page: ResultPage, note: str, has_more: bool) -> ResultPage:
    return replace(page, has_more=has_more, note="; ".join(text for text in (page.note, note) if text))


def _check_count(name: str, value: object, remark: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, got {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} must be >= 1{remark}, got {value}")
    if value > _FARTHEST:
        raise ValueError(f"{name} is too large")


def _check_type(name: str, value: object, kind: type, wanted: str) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}")
