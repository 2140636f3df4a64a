"""Reads lines of text from files of any size, and tells text from other data."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import BinaryIO

BLOCK = 1 << 18
START = 8192
"""How much of a file is looked at to tell whether it is text."""

_NOT_TEXT = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF-": "a PDF document",
    b"PK\x03\x04": "a ZIP archive or office document",
    b"\x1f\x8b": "gzip data",
    b"\x28\xb5\x2f\xfd": "zstd data",
    b"\x7fELF": "an ELF program",
    b"SQLite format 3\0": "an SQLite database",
}
_SIGNATURES = tuple(_NOT_TEXT)
_NOT_FOR_FILES = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape"})
"""Codecs that are made for names and literals; on a large file some would take minutes."""


def kind_of_binary(start: bytes) -> str:
    """Return in words what data that begins with *start* is, or nothing when it can be text."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16 text (give encoding='utf-16')"
    if start.startswith(_SIGNATURES):
        return next(kind for signature, kind in _NOT_TEXT.items() if start.startswith(signature))
    return "binary data" if b"\0" in start else ""


@dataclass(frozen=True)
class Page:
    """Which lines of a file are wanted, how its bytes are to be read, and how many may be returned."""

    offset: int = 1
    limit: int | None = None
    encoding: str = "utf-8"
    max_bytes: int = 10 << 20


def read_page(stream: BinaryIO, page: Page) -> str:
    """Return the lines of the page; only they are held in memory.

    Raises:
        ValueError: It is not text in this encoding, or too large; the reason is worded to follow the file's name.
    """
    if _newline_is_a_byte(page.encoding):
        start = _check_text(stream)
        if page.offset == 1 and page.limit is None and len(start) < START:  # all of it
            return _decode(_few_enough(start, page.max_bytes), page.encoding, 1)
        _skip_lines(stream, page.offset - 1)
        return _decode(_take(stream, page.limit, page.max_bytes), page.encoding, page.offset)
    # In the wide encodings a line feed is not one byte, so that lines are known only after decoding.
    text = _decode(_take(stream, None, page.max_bytes), page.encoding, 1)
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return "".join(lines[page.offset - 1 :][: page.limit])


@lru_cache(maxsize=64)
def _newline_is_a_byte(encoding: str) -> bool:
    try:
        if codecs.lookup(encoding).name not in _NOT_FOR_FILES:
            return "\n".encode(encoding) == b"\n"
    except (LookupError, ValueError):
        pass
    raise ValueError(
        f"cannot be read as {encoding!r}, which is not a text encoding; common ones are 'utf-8', 'utf-16', 'latin-1'"
    )


def text_to_search(stream: BinaryIO, max_bytes: int) -> bytes:
    """Return the whole content of a text file.

    Raises:
        ValueError: It is not text, or too large; worded as above.
    """
    size = os.fstat(stream.fileno()).st_size
    if size > max_bytes:
        raise ValueError(f"has {size:,} bytes, more than {max_bytes:,} (tools.file.max_bytes)")
    _check_text(stream)
    return _take(stream, None, max_bytes)


def _check_text(stream: BinaryIO) -> bytes:
    """Return the start of the file, which can be text; less than START is all of it."""
    start = stream.read(START)
    if kind := kind_of_binary(start):
        size = os.fstat(stream.fileno()).st_size
        raise ValueError(f"is {kind}, {size:,} bytes, not text")
    stream.seek(0)
    return start


def _skip_lines(stream: BinaryIO, count: int) -> None:
    """Move past *count* lines, or to the end."""
    while count and (block := stream.read(BLOCK)):
        found = block.count(b"\n")
        if found < count:
            count -= found
            continue
        end = -1
        for _ in range(count):
            end = block.index(b"\n", end + 1)
        stream.seek(end + 1 - len(block), os.SEEK_CUR)
        return


def _take(stream: BinaryIO, limit: int | None, max_bytes: int) -> bytes:
    """Return *limit* lines, or everything to the end."""
    # A line is read only so far that it is seen to be too large.
    lines = islice(iter(partial(stream.readline, max_bytes + 1), b""), limit)
    data = bytearray()
    for piece in iter(partial(stream.read, BLOCK), b"") if limit is None else lines:
        data += piece
        _few_enough(data, max_bytes)
    return bytes(data)


def _few_enough[T: (bytes, bytearray)](data: T, max_bytes: int) -> T:
    if len(data) > max_bytes:
        raise ValueError(
            f"holds more than {max_bytes:,} bytes here (tools.file.max_bytes): "
            "read fewer lines at a time with offset= and limit=, or find the place with file.search"
        )
    return data


def _decode(data: bytes, encoding: str, first_line: int) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise ValueError(
            f"is not {encoding} text: line {line} holds {data[error.start : error.start + 4]!r}; "
            "give its encoding=, 'latin-1' reads any bytes"
        ) from None
