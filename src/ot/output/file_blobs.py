"""Results in files: content as it comes, then the index, then the meta that makes it visible."""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from ot.errors import ResultError, ResultNotFound, StorageFull
from ot.files.private_file import write_all
from ot.output.result_blobs import HandleTaken, ResultMeta, Sealed
from ot.output.result_cleanup import ResultCleanup
from ot.output.result_files import CONTENT, INDEX, META, META_DRAFT, ResultDirectory, file_name, lock
from ot.output.result_lines import index_size

LOG = logging.getLogger(__name__)


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_OURS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENXIO, errno.EISDIR})
"""A link, or anything but a regular file, in place of OneTool's own file."""


class FileBlobs:
    """Keeps results in one directory within their time and their size; several servers may share it."""

    def __init__(
        self,
        directory: Path,
        *,
        ttl: float,
        max_total_bytes: int,
        below: Path | None = None,
        clock: Callable[[], float] = time.time,
        beside: Callable[[], int] = lambda: 0,
    ) -> None:
        """Make the directory with the first result; what is older than *ttl* seconds goes with a later one.

        With *below*, a project's directory, no link on the way to it is followed. What takes up room *beside* the
        results counts as they do.
        """
        self._path = directory
        self._below = below
        self._clock = clock
        self._cleanup = ResultCleanup(timedelta(seconds=ttl), max_total_bytes, beside)

    def put(self, handle: str, chunks: Iterable[bytes | bytearray], seal: Callable[[], Sealed]) -> ResultMeta:
        """Keep a result, and remove those that are too old, then those that are too many."""
        with _storage_errors():
            directory = ResultDirectory.create(self._path, self._below)
        with directory:
            self._cleanup.sweep(directory, datetime.fromtimestamp(self._clock(), UTC))
            meta = _write(directory, handle, chunks, seal)
            self._cleanup.make_room(directory, newest=meta)
        return meta

    def meta(self, handle: str) -> ResultMeta | None:
        """Return a result's meta."""
        with self._reading(handle) as directory:
            return directory.meta(handle)

    def index(self, meta: ResultMeta) -> bytes:
        """Return the index of a result's lines."""
        with self._reading(meta.handle) as directory:
            return directory.read_file(file_name(meta.handle, INDEX), index_size(meta.size_bytes) + 1)

    def open(self, meta: ResultMeta) -> BinaryIO:
        """Return the content."""
        with self._reading(meta.handle) as directory:
            return directory.open_file(file_name(meta.handle, CONTENT))

    def has_expired(self, handle: str, owner: str) -> bool:
        """Tell whether it was removed here because of its age."""
        return self._cleanup.has_expired(handle, owner)

    @contextmanager
    def _reading(self, handle: str) -> Generator[ResultDirectory]:
        try:
            with ResultDirectory(self._path, self._below) as directory:
                yield directory
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise ResultNotFound(handle) from None
            raise


@contextmanager
def _storage_errors() -> Generator[None]:
    """Turn the system's refusals to write into errors that say so."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        if error.errno in _FULL:
            raise StorageFull(f"storage full: the result could not be stored ({reason}); free some space") from error
        raise ResultError(f"the result could not be stored ({reason}); check output.result_store_dir") from error


def _write(
    directory: ResultDirectory, handle: str, chunks: Iterable[bytes | bytearray], seal: Callable[[], Sealed]
) -> ResultMeta:
    content = _claim(directory, handle)
    try:
        with _closing(content):
            # Until the meta stands, the lock tells cleaners that this is no leftover of a crash.
            lock(content)
            for chunk in chunks:
                with _storage_errors():
                    write_all(content, chunk)
            with _storage_errors():
                os.fsync(content)
                return _publish(directory, handle, seal())
    except BaseException:
        with suppress(OSError):  # what cannot be removed now is swept after the TTL
            directory.remove(handle)
        raise


def _claim(directory: ResultDirectory, handle: str) -> int:
    with _storage_errors(), suppress(FileExistsError):
        return directory.create_file(file_name(handle, CONTENT))
    raise HandleTaken(handle)


def _publish(directory: ResultDirectory, handle: str, sealed: Sealed) -> ResultMeta:
    _write_file(directory, file_name(handle, INDEX), sealed.index)
    _write_file(directory, file_name(handle, META_DRAFT), sealed.meta.model_dump_json().encode())
    directory.replace(file_name(handle, META_DRAFT), file_name(handle, META))
    return sealed.meta


def _write_file(directory: ResultDirectory, name: str, data: bytes) -> None:
    fd = directory.create_file(name)
    with _closing(fd):
        write_all(fd, data)
        os.fsync(fd)


@contextmanager
def _closing(fd: int) -> Generator[None]:
    try:
        yield
    finally:
        with _storage_errors():  # some file systems report a failed write only here
            os.close(fd)
