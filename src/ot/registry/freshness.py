"""Freshness: whether files are still as they were when a picture was made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

type Stamp = tuple[int, int, int]


def stamp_of(path: Path) -> Stamp:
    """Return what changes when a file or directory does."""
    try:
        found = path.stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


class Freshness:
    """The stamps of files, by what they belong to; looking again costs a system call each."""

    def __init__(self, always: Iterable[Path], packs: Mapping[str, Iterable[Path]]) -> None:
        """Watch *always*, and a pack's files when the pack is spoken of."""
        self._always = {path: stamp_of(path) for path in always}
        self._packs = {name: {path: stamp_of(path) for path in paths} for name, paths in packs.items()}

    def is_lost(self, command: str) -> bool:
        """Return whether something that *command* may depend on has changed."""
        stamps = [self._always, *(stamps for name, stamps in self._packs.items() if name in command)]
        return any(stamp_of(path) != stamp for known in stamps for path, stamp in known.items())
