"""SpoolDirectories: where workers put replies that are too large for their wire."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ot.files.no_links import NO_LINK, READ, make_private
from ot.files.private_file import is_at, lock, try_lock

UNLOCKED_SECONDS = 60.0
"""How long what no server holds may stay: one that has just been made is not held yet."""


class SpoolDirectories:
    """Makes a directory for each worker below one that the server holds, and removes those that no server holds."""

    def __init__(self, place: Path) -> None:
        """Make them below *place*, which servers may share."""
        self._place = place
        self._own: Path | None = None
        self._lock = -1

    def new(self, name: str = "worker") -> Path:
        """Return a new directory, whose name begins so, that only this user can enter.

        Raises:
            OSError: It cannot be made.
        """
        self.sweep()
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._get_directory()))

    def sweep(self) -> None:
        """Remove what servers have left that were killed: nobody holds it."""
        if self._own is not None:
            with suppress(OSError):
                self._get_directory()
        for entry in _entries(self._place):
            with suppress(OSError):
                old = time.time() - entry.stat(follow_symlinks=False).st_mtime > UNLOCKED_SECONDS
                if old and (self._own is None or entry.path != str(self._own)) and not _is_held(entry.path):
                    _remove(entry)

    def total_bytes(self) -> int:
        """Return how much all servers have spooled."""
        total = 0
        for directory, _, names in self._place.walk():
            for name in names:
                with suppress(OSError):  # it is gone by now
                    total += (directory / name).lstat().st_size
        return total

    def close(self) -> None:
        """Remove this server's own."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
            os.close(self._lock)
            self._own = None

    def _get_directory(self) -> Path:
        """Return this server's directory, which its workers may have had to make again."""
        if self._own is None or not is_at(self._own, self._lock):
            if self._own is not None:
                os.close(self._lock)
            self._own, self._lock = self._hold(self._own)
        return self._own

    def _hold(self, before: Path | None) -> tuple[Path, int]:
        while True:
            make_private(self._place)
            if before is None:
                before = Path(tempfile.mkdtemp(prefix="server-", dir=self._place))
            before.mkdir(mode=0o700, exist_ok=True)
            held = os.open(before, READ)
            lock(held, shared=True)
            if is_at(before, held):
                return before, held
            os.close(held)  # another server has just removed it


def _is_held(path: str) -> bool:
    fd = os.open(path, READ | NO_LINK)
    try:
        return not try_lock(fd)
    finally:
        os.close(fd)


def _entries(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as found:
            return list(found)
    except OSError:  # there is none, or not any more
        return []


def _remove(entry: os.DirEntry[str]) -> None:
    if entry.is_dir(follow_symlinks=False):
        shutil.rmtree(entry.path, ignore_errors=True)
    else:
        os.unlink(entry.path)  # noqa: PTH108 - an entry's path is a text
