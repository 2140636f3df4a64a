"""The directory of stored results: private, reached through one descriptor, links never followed."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from pydantic import ValidationError

from ot.errors import ResultError
from ot.files.no_links import (
    BY_DESCRIPTOR,
    CREATE,
    DIRECTORY,
    NO_LINK,
    READ,
    close_if_refused,
    names_in,
    open_directory,
    require_regular,
)
from ot.files.private_file import try_lock
from ot.output.result_blobs import HANDLE, ResultMeta

MAX_META_BYTES = 16_384
CONTENT, INDEX, META, META_DRAFT = ".txt", ".idx", ".meta.json", ".meta.tmp"
SUFFIXES = (META, META_DRAFT, INDEX, CONTENT)
"""In the order of removal: without its meta a result is no longer found, so nobody meets half of one."""

FILE_OF_RESULT = re.compile(rf"result-({HANDLE.pattern})({'|'.join(map(re.escape, SUFFIXES))})")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One regular file of the directory whose name is that of a result's file."""

    handle: str
    suffix: str
    entry: os.DirEntry[str]

    def status(self) -> os.stat_result:
        """Return size and times; asked for only when needed, for there may be very many files."""
        return self.entry.stat(follow_symlinks=False)


def file_name(handle: str, suffix: str) -> str:
    """Return the name of one of a result's files."""
    return f"result-{handle}{suffix}"


class ResultDirectory:
    """An open directory that only this user may enter."""

    def __init__(self, path: Path, below: Path | None = None) -> None:
        """Open *path*; with *below*, a project's directory, no link on the way is followed."""
        self._path = path
        self._fd = _open_private(path, below) if BY_DESCRIPTOR else None

    @classmethod
    def create(cls, path: Path, below: Path | None = None) -> Self:
        """Return the directory, made with its parents if need be, with mode 0700 whatever the umask."""
        with names_in(path, below=below, make=True):
            return cls(path, below)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            with suppress(OSError):  # it was only read
                os.close(self._fd)

    def create_file(self, name: str) -> int:
        """Return a descriptor to write a new file with mode 0600.

        Raises:
            FileExistsError: Anything has this name already, a link included.
        """
        fd = os.open(self._at(name), CREATE, 0o600, dir_fd=self._fd)
        try:
            if BY_DESCRIPTOR:
                os.fchmod(fd, 0o600)  # the umask may have taken the owner's own rights away
        except OSError:
            os.close(fd)
            os.unlink(self._at(name), dir_fd=self._fd)
            raise
        return fd

    def open_file(self, name: str) -> BinaryIO:
        """Return a regular file for reading.

        Raises:
            OSError: It is missing, a link, or anything but a regular file.
        """
        fd = os.open(self._at(name), READ | NO_LINK, dir_fd=self._fd)
        with close_if_refused(fd) as found:
            require_regular(found, name)
        return os.fdopen(fd, "rb", buffering=0)

    def read_file(self, name: str, limit: int) -> bytes:
        """Return at most *limit* bytes of a regular file."""
        with self.open_file(name) as file:
            return file.read(limit)

    def meta(self, handle: str) -> ResultMeta | None:
        """Return a result's meta, or nothing when it is damaged or tells of another result.

        Raises:
            OSError: There is no such file, or it cannot be read.
        """
        text = self.read_file(file_name(handle, META), MAX_META_BYTES + 1)
        try:
            meta = ResultMeta.model_validate_json(text) if len(text) <= MAX_META_BYTES else None
        except ValidationError:
            return None
        return meta if meta and meta.handle == handle else None

    def exists(self, name: str) -> bool:
        """Tell whether anything has this name."""
        try:
            os.stat(self._at(name), dir_fd=self._fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def replace(self, old: str, new: str) -> None:
        """Give a file its final name in one step."""
        os.replace(self._at(old), self._at(new), src_dir_fd=self._fd, dst_dir_fd=self._fd)

    def remove(self, handle: str, suffixes: Sequence[str] = SUFFIXES) -> None:
        """Remove a result's files, as far as another cleaner has not."""
        for suffix in sorted(suffixes, key=SUFFIXES.index):
            with suppress(FileNotFoundError):
                os.unlink(self._at(file_name(handle, suffix)), dir_fd=self._fd)

    def files(self) -> Iterator[ResultFile]:
        """Yield the regular files that belong to results; everything else is not ours."""
        with os.scandir(self._path if self._fd is None else self._fd) as entries:
            for entry in entries:
                match = FILE_OF_RESULT.fullmatch(entry.name)
                if match and entry.is_file(follow_symlinks=False):
                    yield ResultFile(match[1], match[2], entry)

    def is_being_written(self, handle: str) -> bool:
        """Tell whether a living process holds the lock on a result's content."""
        try:
            with self.open_file(file_name(handle, CONTENT)) as content:
                return not lock(content.fileno())
        except FileNotFoundError:
            return False

    def _at(self, name: str) -> str:
        return name if self._fd is not None else str(self._path / name)


def lock(fd: int) -> bool:
    """Lock an open file until it is closed; False when another process or thread has it."""
    try:
        return try_lock(fd)
    except OSError:
        return True  # this file system has no locks: a leftover's age alone decides


def _open_private(path: Path, below: Path | None) -> int:
    fd = os.open(path, DIRECTORY) if below is None else open_directory(path, below=below)
    with close_if_refused(fd) as found:
        if found.st_uid != os.geteuid():
            raise ResultError(f"{path} belongs to another user; set output.result_store_dir to a directory of your own")
        if found.st_mode & stat.S_ISVTX:
            raise ResultError(f"{path} is shared by all users; set output.result_store_dir to a directory of your own")
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.fchmod(fd, 0o700)
    return fd
