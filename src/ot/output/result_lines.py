"""Lines of a stored result: counted as it is written, found again at the cost of one block."""

from __future__ import annotations

import sys
import time
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ot.errors import ResultError, StorageFull

BLOCK = 65_536
"""The index keeps one number for each block of this many bytes: the newlines up to its end."""

FLUSH = 16 * BLOCK
"""Bytes that are written at once."""

LONG_LINE = 1 << 20
"""A longer line is searched in pieces."""

OVERLAP = 65_536
"""What consecutive pieces share, so that a match across their border is seen whole."""

QUICK = 0.01
"""Seconds for a block; who takes no longer gets so many at once."""
QUICK_BLOCKS = 4


class LineIndexBuilder:
    """Counts lines while content passes by."""

    def __init__(self) -> None:
        self._newlines = array("Q")
        self._ends_in_line = False
        self.size = 0

    def add(self, data: bytearray) -> None:
        """Take the next bytes; all but the last must be a whole number of blocks."""
        count = self._newlines[-1] if self._newlines else 0
        for start in range(0, len(data), BLOCK):
            count += data.count(b"\n", start, start + BLOCK)
            self._newlines.append(count)
        self.size += len(data)
        self._ends_in_line = not data.endswith(b"\n")

    @property
    def total_lines(self) -> int:
        """The number of lines; only ``\\n`` ends one."""
        return (self._newlines[-1] + self._ends_in_line) if self._newlines else 0

    def to_bytes(self) -> bytes:
        """Return the index as it is stored: little-endian 64-bit numbers."""
        return _little_endian(self._newlines).tobytes()


def count_blocks(chunks: Iterable[bytes | str], index: LineIndexBuilder, max_bytes: int) -> Iterator[bytearray]:
    """Yield *chunks* as whole blocks, the last one aside, each counted by *index* before.

    Raises:
        StorageFull: There is more than *max_bytes*.
    """
    for block in _blocks(chunks):
        index.add(block)
        if index.size > max_bytes:
            raise StorageFull(f"the result is larger than all results together may be ({max_bytes:,} bytes)")
        yield block


def _blocks(chunks: Iterable[bytes | str]) -> Iterator[bytearray]:
    waiting = bytearray()
    for piece in _pieces(chunks):
        waiting += piece
        if len(waiting) >= FLUSH:
            whole = len(waiting) - len(waiting) % BLOCK
            yield waiting[:whole]
            del waiting[:whole]
    if waiting:
        yield waiting


def _pieces(chunks: Iterable[bytes | str]) -> Iterator[bytes]:
    """Yield *chunks* as bytes, large ones a part at a time: encoding one whole would double it."""
    for chunk in (chunks,) if isinstance(chunks, str | bytes) else chunks:
        if len(chunk) > FLUSH:
            yield from (_encode(chunk[start : start + FLUSH]) for start in range(0, len(chunk), FLUSH))
        else:
            yield _encode(chunk)


def _encode(chunk: bytes | str) -> bytes:
    # A lone surrogate cannot be stored as UTF-8; its escape says what was there.
    return chunk.encode(errors="backslashreplace") if isinstance(chunk, str) else chunk


class LineReader:
    """Finds a line of a stored result at the cost of one block, however large the result is."""

    def __init__(self, content: BinaryIO, index: bytes, size: int, total_lines: int) -> None:
        if len(index) != index_size(size):
            raise ValueError("the index does not match the content")
        self._content = content
        self._newlines = _little_endian(array("Q", index))
        self.size = size
        self.total_lines = total_lines
        if not 0 <= total_lines - (self._newlines[-1] if self._newlines else 0) <= (size > 0):
            raise ValueError("the number of lines does not match the content")

    def read(self, start: int, length: int) -> bytes:
        """Return *length* bytes of the content, fewer at its end."""
        self._content.seek(start)
        parts: list[bytes] = []
        while length > 0 and (part := self._content.read(length)):
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def start_of(self, number: int) -> int:
        """Return where line *number* begins, counted from 1; after the last line, the content's size.

        Raises:
            ResultError: The content is not what the index was made from.
        """
        if number > self.total_lines:
            return self.size
        if number == 1:
            return 0
        block = bisect_left(self._newlines, number - 1)
        before = self._newlines[block - 1] if block else 0
        data = self.read(block * BLOCK, BLOCK)
        if data.count(b"\n") != self._newlines[block] - before:
            raise ResultError("the stored result is damaged: its content and its index disagree")
        return block * BLOCK + len(data) - len(data.split(b"\n", number - 1 - before)[-1])

    def length_of(self, number: int) -> int:
        """Return how many bytes line *number* has, its newline not counted."""
        start, end = self.start_of(number), self.start_of(number + 1)
        return end - start - (self.read(end - 1, 1) == b"\n" if end > start else 0)

    def number_at(self, position: int) -> int:
        """Return the number of the line that the byte at *position* belongs to."""
        block = position // BLOCK
        before = self._newlines[block - 1] if block else 0
        return before + self.read(block * BLOCK, position - block * BLOCK).count(b"\n") + 1

    def blocks(self) -> Iterator[LineBlock]:
        """Yield the whole content as blocks of whole lines, and of pieces of long lines.

        Who takes long over one gets small ones, to be able to stop soon.
        """
        position, column, length = 0, 0, BLOCK
        while position < self.size:
            data = self.read(position, length)
            is_last = position + len(data) >= self.size
            if len(data) < length and not is_last:
                raise ResultError("the stored result is damaged: it has become shorter")
            cut = len(data) if is_last else data.rfind(b"\n") + 1
            if not cut and length < LONG_LINE:
                length = min(2 * length, LONG_LINE)
                continue
            given = time.monotonic()
            yield LineBlock(data[:cut] if cut else data, position, column, self, ends_in_line=not cut)
            length = QUICK_BLOCKS * BLOCK if time.monotonic() - given < QUICK else BLOCK
            step = cut or len(data) - OVERLAP
            position, column = position + step, 0 if cut else column + step


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Consecutive lines, or a piece of one."""

    data: bytes
    start: int
    """Where in the content it begins."""
    column: int
    """How many bytes of the first line came before."""
    lines: LineReader
    ends_in_line: bool = False
    """The last line goes on after this block."""

    @property
    def number(self) -> int:
        """The first line's number."""
        return self.lines.number_at(self.start)

    def text(self) -> bytes:
        """Return the lines with ``\\n`` between them and none at the end, a line's trailing ``\\r`` taken off."""
        # Looking for one byte is far quicker than looking for two.
        lines = self.data.replace(b"\r\n", b"\n") if b"\r" in self.data else self.data
        if lines.endswith(b"\n"):
            return lines[:-1]
        return lines if self.ends_in_line else lines.removesuffix(b"\r")


def index_size(size: int) -> int:
    """Return how many bytes the index of *size* bytes of content has."""
    return 8 * -(-size // BLOCK)


def split_lines(data: bytes) -> list[str]:
    """Return the lines of *data* as text; only ``\\n`` splits, a line's trailing ``\\r`` is taken off."""
    if not data:
        return []
    lines = data.removesuffix(b"\n").split(b"\n")
    return [line.removesuffix(b"\r").decode(errors="replace") for line in lines]


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers = array("Q", numbers)
        numbers.byteswap()
    return numbers
