"""Opens what a program names: the server finds it by its rule for paths, the worker opens that very thing."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import BinaryIO

READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
SETTINGS = ".onetool"
"""Directories of this name hold what belongs to the server and its users."""


class OpenDirectory:
    """A directory that a program named, open until the end of the block."""

    def __init__(self, fd: int, real: str, hidden: Sequence[str]) -> None:
        self._fd = fd
        by_number = f"/proc/self/fd/{fd}"
        self.path = by_number if os.path.isdir(by_number) else real  # noqa: PTH112 - pathlib would cost each start 5 ms
        """Where it is, whatever has its name meanwhile: a prefix for paths, or the directory of a child process."""
        self.hidden = tuple(hidden)
        """What below it may be neither read nor shown, as paths relative to it."""

    def shows(self, path: str) -> bool:
        """Return whether what has this *path*, relative to the directory, may be read and shown."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        if ".." in names or any(name.lower() == SETTINGS for name in names):
            return False
        places = (place.split("/") for place in self.hidden)
        return not any(place == ["."] or names[: len(place)] == place for place in places)

    def __enter__(self) -> OpenDirectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)


def open_found_file(path: str, at: str, identity: Sequence[int]) -> BinaryIO:
    """Return the regular file that the server found for *path* at *at*; its ``name`` is the path as it was given.

    Raises:
        OSError: It cannot be opened, or another file has its place now.
    """

    def open_same(name: str, flags: int) -> int:
        return _open_same(name, at, identity, READ, stat.S_ISREG)

    return open(path, "rb", opener=open_same)


def open_found_directory(path: str, at: str, identity: Sequence[int], hidden: Sequence[str]) -> OpenDirectory:
    """Return the directory that the server found for *path* at *at*.

    Raises:
        OSError: As for a file.
    """
    fd = _open_same(path, at, identity, READ | getattr(os, "O_DIRECTORY", 0), stat.S_ISDIR)
    return OpenDirectory(fd, at, hidden)


def _open_same(path: str, at: str, identity: Sequence[int], flags: int, is_kind: Callable[[int], bool]) -> int:
    fd = os.open(at, flags)
    found = os.fstat(fd)
    # A link on the way, or another file, may have taken its place since the server looked.
    if [found.st_dev, found.st_ino] != list(identity) or not is_kind(found.st_mode):
        os.close(fd)
        raise PermissionError(f"{path!r} was replaced while it was opened")
    return fd
