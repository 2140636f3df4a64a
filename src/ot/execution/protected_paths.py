"""ProtectedPaths: what no program may write, and the little that it may not even read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from ot.execution.protected_names import fold, why_protected

PRIVATE_STATE = frozenset({"sessions", "stats", "tmp"})
"""Folders below ``.onetool`` whose content belongs to single callers, who reach it by handle."""

type Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Locked:
    """A place that is not written, and why; with a pattern, only what lies below it by a path that begins so."""

    path: Path
    why: str
    below: str = ""

    @property
    def names(self) -> Names:
        """The real place, in the form that is compared."""
        return _names(self.path)


type FindLocked = Callable[[], Iterable[Locked]]


@dataclass(frozen=True)
class ProtectedPaths:
    """Answers, for a real path whose names are folded, why it may not be written or read; an empty answer allows it.

    What is ``hidden`` can be neither read nor written, but for what is ``shown`` below it; what is ``locked`` cannot be
    written, and is looked for before the first write. Of the ``roots``, in which programs may write at all, the
    innermost counts.
    """

    roots: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    shown: tuple[Path, ...] = ()
    locked: FindLocked = tuple
    _roots: tuple[Names, ...] = field(init=False, repr=False, compare=False)
    _hidden: tuple[Names, ...] = field(init=False, repr=False, compare=False)
    _shown: tuple[Names, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Resolve what is protected, because real places are compared."""
        for name in ("roots", "hidden", "shown"):
            object.__setattr__(self, f"_{name}", tuple(_names(path) for path in getattr(self, name)))

    @cached_property
    def _locked(self) -> tuple[tuple[Names, Locked], ...]:
        return tuple((entry.names, entry) for entry in self.locked())

    def why_not_write(self, folded: Names) -> str:
        """Return why nothing may be written at this path."""
        root = max((len(names) for names in self._roots if folded[: len(names)] == names), default=0)
        if why := why_protected(folded, root):
            return why
        for names, entry in self._locked:
            if folded[: len(names)] == names and re.match(entry.below, "/".join(folded[len(names) :])):
                return entry.why
        return self.why_not_read(folded)

    def why_not_read(self, folded: Names) -> str:
        """Return why this path may not be read."""
        if _is_below(folded, self._hidden) and not _is_below(folded, self._shown):
            return "it is private to the server"
        if ".onetool" not in folded:
            return ""
        below = folded[folded.index(".onetool") + 1 :]
        # "secret", without its s, also meets the short form SECRET~1.
        if any(name.startswith("secret") for name in below):
            return "secrets never reach a program"
        return "it belongs to single callers: ask by handle" if PRIVATE_STATE.intersection(below[:1]) else ""

    def is_hidden_file(self, status: os.stat_result) -> bool:
        """Return whether this file is a hidden one under another name, which only a hard link can be."""
        return status.st_nlink > 1 and any(_is_at(path, status) for path in self.hidden)


def _names(path: Path) -> Names:
    return tuple(map(fold, Path(os.path.realpath(path)).parts[1:]))


def _is_below(folded: Names, places: tuple[Names, ...]) -> bool:
    return any(folded[: len(place)] == place for place in places)


def _is_at(path: Path, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(status, path.stat())
    except OSError:
        return False
