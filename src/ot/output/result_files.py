"""The directory of stored results: private, reached through one descriptor, links never followed."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ot.errors import ResultError
from ot.no_links import BY_DESCRIPTOR, names_in, open_directory

if sys.platform != "win32":
    import fcntl

HANDLE = re.compile(r"[A-Za-z0-9_-]{22,64}")
CONTENT, INDEX, META, META_DRAFT = ".txt", ".idx", ".meta.json", ".meta.tmp"
SUFFIXES = (META, META_DRAFT, INDEX, CONTENT)
"""In the order of removal: without its meta a result is no longer found, so nobody meets half of one."""

FILE_OF_RESULT = re.compile(rf"result-({HANDLE.pattern})({'|'.join(map(re.escape, SUFFIXES))})")
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# Without O_NONBLOCK a fifo under a result's name would hold the reader for ever.
_READ = os.O_RDONLY | _SAFE | getattr(os, "O_NONBLOCK", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE


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
        if below is None:
            with suppress(FileExistsError):
                _make(path)
        else:
            with names_in(path, below=below, make=True):
                pass
        return cls(path, below)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            with suppress(OSError):  # it was only read
                os.close(self._fd)

    def create_file(self, name: str) -> int:
        """Return a descriptor to write a new file with mode 0600.

        Raises:
            FileExistsError: Anything has this name already, a link included.
        """
        fd = os.open(self._at(name), _CREATE, 0o600, dir_fd=self._fd)
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
        fd = os.open(self._at(name), _READ, dir_fd=self._fd)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "not a regular file", name)
        except OSError:
            os.close(fd)
            raise
        return os.fdopen(fd, "rb", buffering=0)

    def read_file(self, name: str, limit: int) -> bytes:
        """Return at most *limit* bytes of a regular file."""
        with self.open_file(name) as file:
            return file.read(limit)

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
    if sys.platform == "win32":
        return True  # there an open file cannot be removed at all
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # this file system has no locks: a leftover's age alone decides
    return True


def _make(path: Path) -> None:
    # Path.mkdir(parents=True) would leave the parents' modes to the umask.
    if not path.parent.is_dir():
        with suppress(FileExistsError):
            _make(path.parent)
    path.mkdir(mode=0o700)


def _open_private(path: Path, below: Path | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | _SAFE
    fd = os.open(path, flags) if below is None else open_directory(path, below=below)
    try:
        _make_private(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _make_private(fd: int, path: Path) -> None:
    status = os.fstat(fd)
    if status.st_uid != os.geteuid():
        raise ResultError(f"{path} belongs to another user; set output.result_store_dir to a directory of your own")
    if status.st_mode & stat.S_ISVTX:
        raise ResultError(f"{path} is shared by all users; set output.result_store_dir to a directory of your own")
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.fchmod(fd, 0o700)
