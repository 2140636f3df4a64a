"""Writes one result: content as it comes, then the index, then the meta that makes it visible."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from ot.errors import ResultError, StorageFull
from ot.output.result_files import CONTENT, INDEX, META, META_DRAFT, ResultDirectory, file_name, lock
from ot.output.result_lines import BLOCK, LineIndexBuilder
from ot.output.result_meta import MAX_TOOL_LENGTH, ResultMeta

FLUSH = 16 * BLOCK
_ATTEMPTS = 8
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def storage_errors() -> Generator[None]:
    """Turn the system's refusals to write into errors that say so.

    Raises:
        StorageFull: There is no room.
        ResultError: The disk refuses for another reason.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        if error.errno in _FULL:
            raise StorageFull(f"storage full: the result could not be stored ({reason}); free some space") from error
        raise ResultError(f"the result could not be stored ({reason}); check output.result_store_dir") from error


class ResultWriter:
    """Writes results of at most *max_bytes* into a directory."""

    def __init__(self, directory: ResultDirectory, now: Callable[[], datetime], max_bytes: int) -> None:
        self._directory = directory
        self._now = now
        self._max_bytes = max_bytes

    def write(self, chunks: Iterable[bytes | str], tool: str, owner: str) -> ResultMeta:
        """Return the meta of the stored result; when anything fails, nothing of it is left."""
        with storage_errors():
            handle, content = self._claim()
        try:
            with _closing(content):
                # Until the meta stands, the lock tells cleaners that this is no leftover of a crash.
                lock(content)
                index = self._copy(chunks, content)
                with storage_errors():
                    os.fsync(content)
                    return self._publish(handle, index, tool, owner)
        except BaseException:
            with suppress(OSError):  # what cannot be removed now is swept after the TTL
                self._directory.remove(handle)
            raise

    def _claim(self) -> tuple[str, int]:
        for _ in range(_ATTEMPTS):
            handle = secrets.token_urlsafe(16)
            with suppress(FileExistsError):
                return handle, self._directory.create_file(file_name(handle, CONTENT))
        raise ResultError("the result could not be stored: no free handle was found; try again")

    def _publish(self, handle: str, index: LineIndexBuilder, tool: str, owner: str) -> ResultMeta:
        meta = ResultMeta(
            handle=handle,
            total_lines=index.total_lines,
            size_bytes=index.size,
            created_at=self._now(),
            tool=_printable(tool),
            owner=owner,
        )
        self._write_file(file_name(handle, INDEX), index.to_bytes())
        self._write_file(file_name(handle, META_DRAFT), meta.model_dump_json().encode())
        self._directory.replace(file_name(handle, META_DRAFT), file_name(handle, META))
        return meta

    def _copy(self, chunks: Iterable[bytes | str], content: int) -> LineIndexBuilder:
        index = LineIndexBuilder()
        waiting = bytearray()
        for piece in _pieces(chunks):
            waiting += piece
            if len(waiting) >= FLUSH:
                self._flush(waiting, len(waiting) - len(waiting) % BLOCK, content, index)
        self._flush(waiting, len(waiting), content, index)
        return index

    def _flush(self, waiting: bytearray, length: int, content: int, index: LineIndexBuilder) -> None:
        if not length:
            return
        data = waiting[:length]
        del waiting[:length]
        index.add(data)
        if index.size > self._max_bytes:
            raise StorageFull(f"the result is larger than all results together may be ({self._max_bytes:,} bytes)")
        with storage_errors():
            _write_all(content, data)

    def _write_file(self, name: str, data: bytes) -> None:
        fd = self._directory.create_file(name)
        with _closing(fd):
            _write_all(fd, data)
            os.fsync(fd)


@contextmanager
def _closing(fd: int) -> Generator[None]:
    try:
        yield
    finally:
        with storage_errors():  # some file systems report a failed write only here
            os.close(fd)


def _pieces(chunks: Iterable[bytes | str]) -> Iterator[bytes]:
    """Yield *chunks* as bytes, large ones a part at a time: encoding one whole would double it."""
    for chunk in (chunks,) if isinstance(chunks, str | bytes) else chunks:
        if len(chunk) > FLUSH:
            yield from (_encoded(chunk[start : start + FLUSH]) for start in range(0, len(chunk), FLUSH))
        else:
            yield _encoded(chunk)


def _encoded(chunk: bytes | str) -> bytes:
    # A lone surrogate cannot be stored as UTF-8; its escape says what was there.
    return chunk.encode(errors="backslashreplace") if isinstance(chunk, str) else chunk


def _write_all(fd: int, data: bytes | bytearray) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _printable(tool: str) -> str:
    return tool[:MAX_TOOL_LENGTH].encode(errors="backslashreplace").decode()
