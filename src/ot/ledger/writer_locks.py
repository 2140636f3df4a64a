"""WriterLocks: whether a process that wrote to the ledger is still alive, told by a lock that only it can hold."""

from __future__ import annotations

import os
import re
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from ot.files.no_links import NO_LINK, make_private

if sys.platform != "win32":
    import fcntl

NAME = re.compile(r"[0-9a-f]{32}\Z")


class WriterLocks:
    """A file for each writer, locked while its process lives, however that ends."""

    def __init__(self, directory: Path) -> None:
        """Keep the files in *directory*."""
        self._directory = directory
        self._fd = -1
        self.own = secrets.token_hex(16)
        """The name of this writer."""

    def hold(self) -> None:
        """Show that this writer is alive, from now on."""
        if self._fd >= 0:
            return
        make_private(self._directory)
        self._fd = os.open(self._directory / self.own, os.O_RDWR | os.O_CREAT | NO_LINK | os.O_CLOEXEC, 0o600)
        if sys.platform != "win32":
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def is_alive(self, writer: str) -> bool:
        """Return whether *writer* is alive; the file of one that is not is removed."""
        if writer == self.own:
            return True
        if not NAME.match(writer):
            return False
        try:
            fd = os.open(self._directory / writer, os.O_RDWR | NO_LINK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            return not self._taken(fd, writer)
        finally:
            os.close(fd)

    def _taken(self, fd: int, writer: str) -> bool:
        """Return whether the lock of *writer* was free."""
        if sys.platform == "win32":
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        with suppress(OSError):
            (self._directory / writer).unlink()
        return True

    def release(self) -> None:
        """Show that this writer has ended."""
        if self._fd >= 0:
            with suppress(OSError):
                (self._directory / self.own).unlink()
            os.close(self._fd)
            self._fd = -1
