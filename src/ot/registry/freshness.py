"""Freshness: whether files are still as they were when a picture was made of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

type Stamp = tuple[int, int, int, int]

EVERY_SECONDS = 1.0
"""How often packs are looked at that a command does not name: it may reach them by an alias, or through another."""


def stamp_of(path: Path | str) -> Stamp:
    """Return a value that changes when a file or directory does."""
    try:
        found = os.stat(path)  # noqa: PTH116 - for every run: Path.stat() takes twice as long
    except OSError:
        return (0, 0, 0, 0)
    # With the mode: a file with secrets that others can read is used once its user has made it private.
    return (found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode)


def stamps_below(directory: Path) -> dict[str, Stamp]:
    """Return the stamps of *directory* and of everything in it, by path."""
    found = {str(directory): stamp_of(directory)}
    for folder, folders, files in os.walk(directory):
        found |= {path: stamp_of(path) for path in (f"{folder}/{name}" for name in (*folders, *files))}
    return found


class Freshness:
    """The stamps of files, by what they belong to; looking again costs a system call each."""

    def __init__(
        self,
        always: Iterable[Path],
        packs: Mapping[str, Iterable[Path]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch *always*, and a pack's files when the pack is named, or nobody has looked for a while."""
        self._always = _stamps(always)
        self._packs = {name: _stamps(paths) for name, paths in packs.items()}
        self._clock = clock
        self._looked = clock()

    def is_stale(self, names: Collection[str] = (), *, packs_only: bool = False) -> bool:
        """Return whether the configuration, unless *packs_only* are asked for, or a pack among *names* has changed."""
        overdue = self._clock() - self._looked >= EVERY_SECONDS
        if overdue:
            self._looked = self._clock()
        stamps = [] if packs_only else [self._always]
        stamps += self._packs.values() if overdue else [self._packs[name] for name in names if name in self._packs]
        return any(stamp_of(path) != stamp for known in stamps for path, stamp in known.items())


def _stamps(paths: Iterable[Path]) -> dict[str, Stamp]:
    return {path: stamp_of(path) for path in dict.fromkeys(map(str, paths))}
