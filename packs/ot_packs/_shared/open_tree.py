"""OpenTree: a directory that the server opened, whose files are reached name by name and through no link."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Self

from ot_sdk.files import OpenDirectory

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class OpenTree:
    """A directory to be walked by another program.

    That one follows no links but goes by names, and a name may have become a link when it opens it. So nothing that
    it says of a file is believed before the file was opened here.
    """

    def __init__(self, directory: OpenDirectory, path: str) -> None:
        """Take the directory, which the program calls *path*."""
        self.directory = directory
        self._prefix = "" if path in (".", "./") else path.rstrip("/") + "/"
        self._top = -1

    def __enter__(self) -> Self:
        """Open it once more: a name is looked up in an open directory only."""
        self._top = os.open(self.directory.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        os.close(self._top)

    def name_of(self, relative: str) -> str:
        """Return what the program calls the file that is *relative* to the directory."""
        return self._prefix + relative

    @contextmanager
    def open(self, relative: str) -> Generator[int | None]:
        """Give the regular file, open; None if it may not be seen, is not there, or lies behind a link."""
        descriptor = None
        if self.directory.shows(relative):
            with suppress(OSError, ValueError):
                descriptor = self._open(relative.split("/"))
        try:
            yield descriptor
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _open(self, names: list[str]) -> int | None:
        at = os.dup(self._top)
        for name in names:
            try:
                below = os.open(name, READ, dir_fd=at)
            finally:
                os.close(at)
            at = below
        if stat.S_ISREG(os.fstat(at).st_mode):
            return at
        os.close(at)
        return None
