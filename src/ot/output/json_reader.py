"""Reads JSON anywhere in a large text, holding no more of it than a window."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

WINDOW = 1 << 20
PIECE = 1 << 18
"""Bytes of JSON that are decoded at once."""
SECONDS = 10.0
_DECODER = json.JSONDecoder(strict=False)
_DELIMITERS = frozenset(",:]} \t\r\n")
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")
_STRING_END = re.compile(r'(?:[^"\\]+|\\.)*+', re.DOTALL)


class NotJson(ValueError):
    """The text is no JSON at this place."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at

    def __str__(self) -> str:
        return f"the stored result is no JSON at byte {self.at + 1:,}: read it by lines, with offset, limit or search"


class TooFar(ValueError):
    """A value goes on after the place where reading was to stop."""


class TooSlow(ValueError):
    """The time was up."""

    def __str__(self) -> str:
        return f"the value could not be read within {SECONDS:g} s: read it by lines, with offset, limit or search"


class JsonReader:
    """Finds values and their parts by their place; a place is counted in bytes from 0.

    What lies between is stepped over without being kept, so memory does not grow with the text.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        """Read with *read*, which takes a place and a length, a text of *size* bytes."""
        self._read = read
        self.size = size
        self._base = 0
        # As Latin-1 a character is a byte, so places in the window are places in the text.
        self._window = ""
        self._deadline = time.monotonic() + SECONDS
        self._farthest = size
        self._last = (-1, -1)

    def kind(self, at: int) -> str:
        """Return the first character of the value at *at*.

        Raises:
            NotJson: There is none.
        """
        character = self._character(at)
        if not character or character not in '{["-0123456789tfnNI':
            raise NotJson(at)
        return character

    def items(self, at: int) -> Iterator[int]:
        """Yield where each element of the list at *at* begins."""
        yield from self._items(at)

    def entries(self, at: int) -> Iterator[tuple[str, int]]:
        """Yield each key of the dict at *at* and where its value begins."""
        yield from self._entries(at)

    def skip_space(self, at: int) -> int:
        """Return the first place at or after *at* that is no white space."""
        while True:
            text, place = self._at(at)
            found = _SPACE.match(text, place)
            end = found.end() if found else place
            at += end - place
            if end < len(text) or at >= self.size:
                return at

    def end_of(self, at: int) -> int:
        """Return where the value at *at* ends.

        Raises:
            NotJson: There is no value.
        """
        if self._last[0] != at:
            end = self._end_in_window(at, *self._at(at))
            if end is None:
                self._load(at)
                end = self._end_in_window(at, self._window, 0)
            self._last = at, self._end_of_large(at) if end is None else end
        return self._last[1]

    def end_within(self, at: int, length: int) -> int:
        """Return where the value at *at* ends.

        Raises:
            TooFar: It is longer than *length* bytes.
        """
        self._farthest = at + length
        try:
            end = self.end_of(at)
        finally:
            self._farthest = self.size
        if end - at > length:
            raise TooFar
        return end

    def value(self, at: int, end: int) -> Any:
        """Return the value between two places.

        A large one is decoded a piece at a time: the decoder lets no other thread run until it is done.

        Raises:
            NotJson: It is none.
        """
        if end - at <= PIECE or self.kind(at) not in "[{":
            return self._decoded(self._read(at, end - at), at)
        if self.kind(at) == "{":
            return {key: self.value(place, self.end_of(place)) for key, place in self._whole(self._entries(at), end)}
        return list(self._elements(at, end))

    def _elements(self, at: int, end: int) -> Iterator[Any]:
        """Yield the elements of the list at *at*, as many at once as are a piece together."""
        start = following = 0
        for place in self._whole(self._items(at), end):
            start = start or place
            if following and place - start > PIECE:
                yield from self._between(start, following, place)
                start = place
            following = place
        if start:
            yield from self._between(start, following, self.end_of(following))

    def _between(self, start: int, last: int, end: int) -> list[Any]:
        """Return the elements from *start* on, of which the last begins at *last* and ends before *end*."""
        if start == last:
            return [self.value(start, self.end_of(start))]
        return self._decoded(b"[" + self._read(start, end - start).rstrip(b" \t\r\n,") + b"]", start)

    def _whole[T](self, parts: Generator[T, None, int], end: int) -> Iterator[T]:
        after = yield from parts
        if self.skip_space(after) < end:
            raise NotJson(after)

    def _decoded(self, text: bytes, at: int) -> Any:
        try:
            return json.loads(text.decode(errors="replace"), strict=False)
        except (ValueError, RecursionError):
            raise NotJson(at) from None

    def _items(self, at: int) -> Generator[int, None, int]:
        at = self.skip_space(at + 1)
        if self._character(at) == "]":
            return at + 1
        while True:
            yield at
            if following := self._following(at):
                at = following
                continue
            at, more = self._after(at, "]")
            if not more:
                return at

    def _entries(self, at: int) -> Generator[tuple[str, int], None, int]:
        at = self.skip_space(at + 1)
        if self._character(at) == "}":
            return at + 1
        while True:
            key, colon = self._key(at)
            start = self.skip_space(colon + 1)
            yield key, start
            at, more = self._after(start, "}")
            if not more:
                return at

    def _key(self, at: int) -> tuple[str, int]:
        if self._character(at) != '"':
            raise NotJson(at)
        end = self.end_of(at)
        colon = self.skip_space(end)
        if self._character(colon) != ":":
            raise NotJson(colon)
        return self.value(at, end), colon

    def _after(self, at: int, closing: str) -> tuple[int, bool]:
        """Step over the value at *at*: return the next one's place, or the container's end and False."""
        at = self.skip_space(self.end_of(at))
        character = self._character(at)
        if character == closing:
            return at + 1, False
        if character != ",":
            raise NotJson(at)
        return self.skip_space(at + 1), True

    def _following(self, at: int) -> int:
        """Return where the next element begins, or 0 when the window does not show it: the quick way through a list."""
        try:
            end = _DECODER.raw_decode(self._window, at - self._base)[1]
        except (ValueError, RecursionError):
            return 0
        comma = _COMMA.match(self._window, end)
        return self._base + comma.end() if comma and comma.end() < len(self._window) else 0

    def _end_in_window(self, at: int, text: str, place: int) -> int | None:
        try:
            end = _DECODER.raw_decode(text, place)[1]
        except (ValueError, RecursionError):
            return None
        # A number may go on after the window, which may have cut it anywhere, as "1." or "1e".
        is_whole = text[end] in _DELIMITERS if end < len(text) else at + end - place >= self.size
        return at + end - place if is_whole else None

    def _end_of_large(self, at: int) -> int:
        kind = self.kind(at)
        if kind == '"':
            return self._end_of_string(at)
        if kind not in "{[" or (at + len(self._window) >= self.size and self._base == at):
            raise NotJson(at)
        parts: Generator[Any, None, int] = self._entries(at) if kind == "{" else self._items(at)
        while True:
            try:
                next(parts)
            except StopIteration as done:
                return done.value

    def _end_of_string(self, at: int) -> int:
        at += 1
        while at < self.size:
            self._load(at)
            found = _STRING_END.match(self._window)
            length = found.end() if found else 0
            if length < len(self._window) and self._window[length] == '"':
                return at + length + 1
            # Only an escape that the window cut in two stops it elsewhere.
            if not length:
                break
            at += length
        raise NotJson(at)

    def _character(self, at: int) -> str:
        text, place = self._at(at)
        return text[place : place + 1]

    def _at(self, at: int) -> tuple[str, int]:
        if not self._base <= at < self._base + len(self._window):
            self._load(at)
        return self._window, at - self._base

    def _load(self, at: int) -> None:
        if at > self._farthest:
            raise TooFar
        if time.monotonic() > self._deadline:
            raise TooSlow
        self._window = self._read(at, WINDOW).decode("latin-1")
        self._base = at
        if not self._window and at < self.size:
            raise NotJson(at)  # it has become shorter
