"""Keeps large results in files, each for its owner, and reads them back a page at a time."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from ot.errors import ResultError, ResultExpired, ResultNotFound
from ot.output.result_cleanup import ResultCleanup, is_older
from ot.output.result_files import CONTENT, HANDLE, INDEX, ResultDirectory, file_name
from ot.output.result_lines import LineReader, index_size
from ot.output.result_meta import MAX_OWNER_BYTES, ResultMeta, StoredResult, read_meta
from ot.output.result_pages import Page, PageQuery, PageReader
from ot.output.result_writer import ResultWriter, storage_errors

__all__ = ["Page", "ResultStore", "StoredResult"]

SMALLEST_PAGE = 1024
"""A page of a few bytes could not even hold a character, and reading on would never end."""

_NOT_OURS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO, errno.EISDIR})
"""A link, or anything but a regular file, where a file of ours should be."""


class ResultStore:
    """Stores results under one directory, which several servers may share.

    Every method is plain file work that blocks: call it in a thread. All of them may be called at the same time.
    """

    def __init__(
        self,
        directory: Path,
        *,
        ttl: float,
        max_total_bytes: int,
        max_page_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = directory
        self._ttl = timedelta(seconds=ttl)
        self._max_total_bytes = max_total_bytes
        self._max_page_bytes = max(max_page_bytes, SMALLEST_PAGE)
        self._clock = clock
        self._cleanup = ResultCleanup(self._ttl, max_total_bytes)

    def put(self, chunks: Iterable[bytes | str], *, tool: str, owner: str) -> StoredResult:
        """Store a result as it comes, never holding it whole, and clean up what has expired.

        Raises:
            StorageFull: There is no room for it; nothing of it is left.
            ResultError: It could not be written for another reason; nothing of it is left.
        """
        if len(owner.encode()) > MAX_OWNER_BYTES:
            raise ValueError(f"the owner's name is longer than {MAX_OWNER_BYTES} bytes")
        with storage_errors():
            directory = ResultDirectory.create(self._path)
        with directory:
            self._cleanup.sweep(directory, self._now())
            meta = ResultWriter(directory, self._now, self._max_total_bytes).write(chunks, tool, owner)
            self._cleanup.make_room(directory, newest=meta)
        return meta.stored()

    def describe(self, handle: str, *, owner: str) -> StoredResult:
        """Return what is known about a result.

        Raises:
            ResultNotFound: This owner has no such result.
            ResultExpired: It is older than the TTL.
        """
        with self._found(handle, owner) as (_, meta):
            return meta.stored()

    def page(
        self,
        handle: str,
        *,
        owner: str,
        offset: int = 1,
        limit: int = 100,
        search: str = "",
        fuzzy: bool = False,
        from_byte: int = 1,
    ) -> Page:
        """Return the lines from *offset* on; with *search*, of the matching lines those from *offset* on.

        *from_byte* reads on within a line that was too long for its page.

        Raises:
            TypeError, ValueError: The query makes no sense.
            ResultNotFound: This owner has no such result.
            ResultExpired: It is older than the TTL.
        """
        query = PageQuery(offset, limit, search, fuzzy, from_byte)
        with self._found(handle, owner) as (directory, meta), self._content(directory, meta) as content:
            lines = _line_reader(directory, meta, content)
            return PageReader(lines, self._max_page_bytes).page(query)

    def open_content(self, handle: str, *, owner: str) -> BinaryIO:
        """Return a result's whole content as a file, for the caller to read in blocks and to close.

        Raises:
            ResultNotFound: This owner has no such result.
            ResultExpired: It is older than the TTL.
        """
        with self._found(handle, owner) as (directory, meta):
            return self._content(directory, meta)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)

    @contextmanager
    def _found(self, handle: object, owner: str) -> Generator[tuple[ResultDirectory, ResultMeta]]:
        handle = _checked_handle(handle)
        try:
            with ResultDirectory(self._path) as directory:
                yield directory, self._meta(directory, handle, owner)
        except FileNotFoundError:
            expired = self._cleanup.has_expired(handle, owner)
            raise (ResultExpired(handle) if expired else ResultNotFound(handle)) from None
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise ResultNotFound(handle) from None
            raise ResultError(f"the stored result could not be read ({error.strerror})") from error

    def _meta(self, directory: ResultDirectory, handle: str, owner: str) -> ResultMeta:
        meta = read_meta(directory, handle)
        if meta is None or meta.owner != owner:
            raise ResultNotFound(handle)
        if self._ttl and is_older(meta.created_at, self._now(), self._ttl):
            raise ResultExpired(handle)
        return meta

    def _content(self, directory: ResultDirectory, meta: ResultMeta) -> BinaryIO:
        try:
            content = directory.open_file(file_name(meta.handle, CONTENT))
        except FileNotFoundError:
            raise ResultExpired(meta.handle) from None  # a cleaner came after the meta was read
        try:
            if os.fstat(content.fileno()).st_size != meta.size_bytes:
                raise ResultNotFound(meta.handle)
        except BaseException:
            content.close()
            raise
        return content


def _checked_handle(handle: object) -> str:
    if not isinstance(handle, str):
        raise ResultNotFound(type(handle).__name__)
    if not HANDLE.fullmatch(handle):
        raise ResultNotFound(ascii(handle[:64])[1:-1])
    return handle


def _line_reader(directory: ResultDirectory, meta: ResultMeta, content: BinaryIO) -> LineReader:
    try:
        index = directory.read_file(file_name(meta.handle, INDEX), index_size(meta.size_bytes) + 1)
        return LineReader(content, index, meta.size_bytes, meta.total_lines)
    except FileNotFoundError:
        raise ResultExpired(meta.handle) from None  # as above
    except ValueError:
        raise ResultNotFound(meta.handle) from None
