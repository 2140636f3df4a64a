"""SpoolDirectories: where workers put replies that are too large for their wire."""

from __future__ import annotations

import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

KEPT_SECONDS = 24 * 3600.0


class SpoolDirectories:
    """Makes a directory for each worker, and clears away what servers that were killed have left."""

    def __init__(self, place: Path) -> None:
        """Make them below *place*, which servers may share."""
        self._place = place
        self._swept = False

    def new(self) -> Path:
        """Return a new directory that only this user can enter.

        Raises:
            OSError: It cannot be made.
        """
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._swept:
            self._swept = True
            self._sweep()
        return Path(tempfile.mkdtemp(prefix="worker-", dir=self._place))

    def _sweep(self) -> None:
        # Another server's workers may be using theirs: only what nobody has touched for a day, and holds something
        # or is a file, is rubbish. An empty directory costs nothing, and its worker may still want it.
        for entry in self._place.iterdir():
            with suppress(OSError):
                if time.time() - entry.lstat().st_mtime < KEPT_SECONDS:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    _empty(entry)
                else:
                    entry.unlink()


def _empty(directory: Path) -> None:
    for entry in directory.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
