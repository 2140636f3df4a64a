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
_SCALAR = r"(?:-?(?:0|[1-9]\d*+)(?:\.\d++)?+(?:[eE][-+]?\d++)?+|true|false|null)"
_SCALARS = re.compile(rf"(?:{_SCALAR},)++", re.ASCII)
_STRING_END = re.compile(r'(?:[^"\\]+|\\.)*+', re.DOTALL)


class NotJson(ValueError):
    """The text is not JSON at this place."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at

    def __str__(self) -> str:
        return f"the stored result is not JSON at byte {self.at + 1:,}: read it by lines, with offset, limit or search"


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

    def __init__(self, read: Callable[[int, int], bytes], size: int, seconds: float | None = None) -> None:
        """Read with *read*, which takes a place and a length, a text of *size* bytes, for ``SECONDS`` or *seconds*."""
        self._read = read
        self.size = size
        self._base = 0
        # As Latin-1 a character is a byte, so places in the window are places in the text.
        self._window = ""
        self._deadline = time.monotonic() + (SECONDS if seconds is None else seconds)
        self._farthest = size
        self._last = (-1, -1)

    def kind(self, at: int) -> str:
        """Return the first character of the value at *at*; raise NotJson if there is none."""
        character = self._character(at)
        if not character or character not in '{["-0123456789tfnNI':
            raise NotJson(at)
        return character

    def parts(self, at: int, closing: str) -> Generator[int, None, int]:
        """Yield where each element, or each key when *closing* is "}", begins; return where the container at *at* ends.

        Each part is stepped over only when the next one is asked for.
        """
        at = self.skip_space(at + 1)
        if self._character(at) == closing:
            return at + 1
        while True:
            if closing == "]":
                at = yield from self._run(at)
            yield at
            at = self.skip_space(self.end_of(at if closing == "]" else self.after_key(at)))
            character = self._character(at)
            if character == closing:
                return at + 1
            if character != ",":
                raise NotJson(at)
            at = self.skip_space(at + 1)

    def entries(self, at: int) -> Iterator[tuple[str, int]]:
        """Yield each key of the dict at *at* and where its value begins."""
        for place in self.parts(at, "}"):
            yield self.value(place, self.end_of(place)), self.after_key(place)

    def after_key(self, at: int) -> int:
        """Return where the value of the key at *at* begins."""
        colon = self.skip_space(self.end_of(at)) if self._character(at) == '"' else at
        if self._character(colon) != ":":
            raise NotJson(colon)
        return self.skip_space(colon + 1)

    def skip_space(self, at: int) -> int:
        """Return the first place at or after *at* that is not white space."""
        while True:
            text, place = self._at(at)
            found = _SPACE.match(text, place)
            end = found.end() if found else place
            at += end - place
            if end < len(text) or at >= self.size:
                return at

    def end_of(self, at: int) -> int:
        """Return where the value at *at* ends; raise NotJson if there is none."""
        if self._last[0] != at:
            end = self._end_in_window(at, *self._at(at))
            if end is None:
                self._load(at)
                end = self._end_in_window(at, self._window, 0)
            self._last = at, self._end_of_large(at) if end is None else end
        return self._last[1]

    def end_within(self, at: int, length: int) -> int:
        """Return where the value at *at* ends; raise TooFar if it is longer than *length* bytes."""
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
            return self._decode(self._bytes(at, end), at)
        if self.kind(at) == "{":
            places = self._whole(self.parts(at, "}"), end)
            keyed = ((self.value(place, self.end_of(place)), self.after_key(place)) for place in places)
            return {key: self.value(place, self.end_of(place)) for key, place in keyed}
        return list(self._elements(at, end))

    def _elements(self, at: int, end: int) -> Iterator[Any]:
        """Yield the elements of the list at *at*, as many at once as are a piece together."""
        start = following = 0
        for place in self._whole(self.parts(at, "]"), end):
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
        return self._decode(b"[" + self._read(start, end - start).rstrip(b" \t\r\n,") + b"]", start)

    def _whole[T](self, parts: Generator[T, None, int], end: int) -> Iterator[T]:
        after = yield from parts
        if self.skip_space(after) < end:
            raise NotJson(after)

    def _decode(self, text: bytes, at: int) -> Any:
        try:
            return _DECODER.decode(text.decode(errors="replace"))
        except (ValueError, RecursionError):
            raise NotJson(at) from None

    def _run(self, at: int) -> Generator[int, None, int]:
        """Yield the elements from *at* on that the window shows with another behind them: the quick way through a list.

        Return where that other one begins.
        """
        while self._base <= at < self._base + len(self._window):
            place = at - self._base
            if self._window[place] not in '{["' and (scalars := _SCALARS.match(self._window, place)):
                for text in scalars[0][:-1].split(","):
                    yield at
                    at += len(text) + 1
                at = self.skip_space(at)
                continue
            try:
                end = _DECODER.raw_decode(self._window, place)[1]
            except (ValueError, RecursionError):
                break
            comma = _COMMA.match(self._window, end)
            if not comma or comma.end() == len(self._window):
                break
            self._last = at, self._base + end
            following = self._base + comma.end()  # whoever takes this one may move the window
            yield at
            at = following
        return at

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
        parts = self.parts(at, "}" if kind == "{" else "]")
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

    def _bytes(self, at: int, end: int) -> bytes:
        if self._base <= at and end <= self._base + len(self._window):
            return self._window[at - self._base : end - self._base].encode("latin-1")
        return self._read(at, end - at)

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
