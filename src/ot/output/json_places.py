"""Where the parts of a stored JSON value begin, found by its lines where each part has one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ot.output.json_reader import WINDOW, JsonReader, NotJson, TooSlow
from ot.output.result_blobs import Form
from ot.output.result_lines import LineReader
from ot_sdk.tagged import TAG
from ot_sdk.wire import to_json

COUNT_SECONDS = 4.0
BEFORE_ALL = -1
"""The place of a list that no bracket opens: its first element begins where the text does."""
LISTS = ("tuple", "set", "frozenset")


class JsonPlaces:
    """Finds elements and entries of a stored value; a place is counted in bytes from 0."""

    def __init__(self, lines: LineReader, form: Form) -> None:
        """Look into the content of *lines*, which is of *form*."""
        self.reader = JsonReader(lines.read, lines.size)
        self._lines = lines
        self._form = form
        # JSON Lines: each line is a value of its own, and all of them are a list.
        self.is_of_documents = form == "text" and self._has_document_a_line()
        self.root = BEFORE_ALL if self.is_of_documents else self.reader.skip_space(0)
        # What this server or a worker wrote has a part a line; a line break stands nowhere else in it.
        self._by_line = self.container(self.root)[1] if form != "text" and lines.total_lines > 1 else -1

    def container(self, at: int) -> tuple[str, int]:
        """Return the kind of the value at *at* ("list", "dict", "pairs" or "") and where its parts are listed.

        Pairs are a dict whose keys are not texts: a list of keys with their values.
        """
        if self.is_of_documents and at == self.root:
            return "list", at
        kind = self.reader.kind(at)
        if kind == "[":
            return "list", at
        if kind != "{":
            return "", at
        return self._read_tag(at) if self._form == "tagged" else ("dict", at)

    def length(self, kind: str, at: int) -> int:
        """Return how many parts the container has whose parts are listed at *at*.

        Raises:
            TooSlow: There are too many to be counted.
        """
        count, is_all = self.count(kind, at)
        if not is_all:
            raise TooSlow
        return count

    def count(self, kind: str, at: int) -> tuple[int, bool]:
        """Return how many parts could be counted, and whether that is all of them."""
        if self._has_lines(at):
            return self._lines.total_lines, True
        parts = self.reader.parts(at, "}" if kind == "dict" else "]")
        deadline = time.thread_time() + COUNT_SECONDS
        number = 0
        for number, _ in enumerate(parts, 1):
            if number % 1000 == 0 and time.thread_time() > deadline:
                return number, False
        return number, True

    def items(self, at: int, first: int = 0, last: int | None = None) -> Iterator[int]:
        """Yield where the elements of a list begin, those from *first* up to *last*."""
        if self.is_of_documents and at == self.root:
            total = self._lines.total_lines
            yield from map(self._document, range(first, total if last is None else min(last, total)))
        elif first and self._has_lines(at):
            if first < self._lines.total_lines:
                # From a line on, the rest is read as if it were a list.
                rest = self.reader.parts(self._line(first, at) - 1, "]")
                yield from islice(rest, None if last is None else max(last - first, 0))
        else:
            yield from islice(self.reader.parts(at, "]"), first, last)

    def entries(self, kind: str, at: int) -> Iterator[tuple[Any, int]]:
        """Yield each key of a dict or of pairs, and where its value begins."""
        if kind == "dict" and not self._has_lines(at):
            yield from self.reader.entries(at)
        elif kind == "dict":
            for number in range(self._lines.total_lines):
                yield self._entry(self._line(number, at))
        else:
            for pair in self.reader.parts(at, "]"):
                key, value = islice(self.reader.parts(pair, "]"), 2)
                yield self.reader.value(key, self.reader.end_of(key)), value

    def entry(self, kind: str, at: int, name: str) -> int | None:
        """Return where the value of a key begins, or nothing if there is no such key."""
        if kind == "dict" and self._has_lines(at):
            return self._search_entry(at, name)
        return next((place for key, place in self.entries(kind, at) if key == name or str(key) == name), None)

    def _read_tag(self, at: int) -> tuple[str, int]:
        first = list(islice(self.reader.entries(at), 2))
        if len(first) < 2 or first[0][0] != TAG or first[1][0] != "v":
            return "dict", at
        tag = self.reader.value(first[0][1], self.reader.end_of(first[0][1]))
        if tag in LISTS:
            return "list", first[1][1]
        return ("pairs", first[1][1]) if tag == "dict" else ("", at)

    def _has_document_a_line(self) -> bool:
        """Tell whether the text is JSON Lines: its first line is a whole value, and more follow."""
        if self._lines.total_lines < 2 or self._lines.length_of(1) > WINDOW:
            return False
        try:
            json.loads(self._lines.read(0, self._lines.length_of(1)), strict=False)
        except (ValueError, RecursionError):
            return False
        return True

    def _has_lines(self, at: int) -> bool:
        """Tell whether each part of this container begins a line."""
        return at == (self.root if self.is_of_documents else self._by_line)

    def _line(self, number: int, at: int) -> int:
        """Return where part *number*, counted from 0, of the container at *at* begins."""
        return self.reader.skip_space(self._lines.start_of(number + 1) if number else at + 1)

    def _document(self, number: int) -> int:
        """Return where the document in line *number*, counted from 0, begins: it is all that the line holds."""
        following = self._lines.start_of(number + 2)
        at = self._line(number, BEFORE_ALL)
        end = self.reader.end_of(at) if at < following else self.reader.size + 1
        if end > following or self.reader.skip_space(end) < following:
            raise NotJson(self._lines.start_of(number + 1))
        return at

    def _entry(self, at: int) -> tuple[str, int]:
        # From the key on, the entry is read as if it began a dict.
        entry = next(iter(self.reader.entries(at - 1)), None)
        if entry is None:
            raise NotJson(at)
        return entry

    def _search_entry(self, at: int, name: str) -> int | None:
        key, value = self._entry(self._line(0, at))
        if key == name:
            return value
        # A key is escaped when it, or what was written together with it, cannot be UTF-8.
        for written in {to_json(name), json.dumps(name).encode()}:
            if (found := self._find(b"\n" + written + b":")) is not None:
                return self._entry(found + 1)[1]
        return None

    def _find(self, wanted: bytes) -> int | None:
        """Return where *wanted* is; since line breaks stand only between entries, it is found nowhere else."""
        for start in range(0, self._lines.size, WINDOW):
            found = self._lines.read(start, WINDOW + len(wanted)).find(wanted)
            if found >= 0:
                return start + found
        return None
