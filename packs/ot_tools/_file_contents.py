"""The content of files: bytes to read and to write, and the texts of a tree that are searched."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress

from ot.files.path_guard import PathGuard
from ot_tools._glob_pattern import GlobPattern
from ot_tools._ignore_rules import IgnoreRules
from ot_tools._text_pages import text_to_search
from ot_tools._tree_walk import FoundEntry, WalkDeadline, matching

OPEN_COST = 50
"""What it costs to open and read a small file."""
BYTES_AT_ONCE = 100
"""Bytes that are searched for a cost of one."""


def read_bytes(guard: PathGuard, path: str, offset: int, limit: int | None, most: int) -> bytes:
    """Return bytes of a file from *offset* on, *limit* or all of them, but never more than *most*."""
    with guard.open_for_reading(path) as stream:
        stream.seek(offset)
        data = stream.read(most + 1 if limit is None else min(limit, most + 1))
    if len(data) > most:
        raise ValueError(
            f"{path!r} holds more than {most:,} bytes (tools.file.max_bytes): read it in parts with limit="
        )
    return data


def encode(path: str, content: str | bytes, max_bytes: int) -> bytes:
    """Return *content* as the bytes that are written to the file *path*."""
    if not isinstance(content, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        kind = type(content).__name__
        raise TypeError(f"content must be text or bytes, not {kind}: use json.dumps() or str() first")
    try:
        data = content if isinstance(content, bytes) else content.encode()
    except UnicodeEncodeError:
        raise ValueError(f"content for {path!r} cannot be written: it holds an unpaired surrogate") from None
    if len(data) > max_bytes:
        limit = f"more than {max_bytes:,} (tools.file.max_bytes)"
        raise ValueError(f"content for {path!r} has {len(data):,} bytes, {limit}: append it in parts")
    return data


def is_there(guard: PathGuard, path: str) -> bool:
    """Return whether anything is at *path*."""
    try:
        guard.status(path)
    except FileNotFoundError:
        return False
    return True


def is_file(guard: PathGuard, found: FoundEntry) -> bool:
    """Return whether it is a file, or a link to one that a program may read."""
    if found.entry.type == "link":
        with suppress(OSError, ValueError):
            return guard.status(found.path).type == "file"
    return found.entry.type == "file"


def texts(
    guard: PathGuard, path: str, pattern: GlobPattern, deadline: WalkDeadline, rules: IgnoreRules | None, max_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """Yield the text files to search, with their content; one file that was asked for by name must be text."""
    if guard.status(path).type == "file":
        with guard.open_for_reading(path) as stream, about(path):
            data = text_to_search(stream, max_bytes)
        deadline.spend(len(data) / BYTES_AT_ONCE)
        yield path, data
        return
    with guard.open_directory(path) as top:
        for found in matching(top, path, pattern, deadline, rules):
            if found.entry.type == "file" and (data := _text_of(found, max_bytes)):
                deadline.spend(OPEN_COST + len(data) / BYTES_AT_ONCE)
                yield found.path, data


def _text_of(found: FoundEntry, max_bytes: int) -> bytes:
    try:
        with found.directory.open_file(found.entry.name) as stream:
            return text_to_search(stream, max_bytes)
    except (OSError, ValueError):
        return b""  # closed to us, gone meanwhile, binary or too large


@contextmanager
def about(path: str) -> Generator[None]:
    """Put the path before what is wrong with the content of its file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path!r} {error}") from None
