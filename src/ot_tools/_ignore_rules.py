"""IgnoreRules: what the ``.gitignore`` files of a tree leave out, directory by directory, as git reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from ot.files.guarded_directory import DirectoryEntry, GuardedDirectory
from ot.files.path_guard import PathGuard
from ot_tools._repository_top import repository_top

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

NAME = ".gitignore"
MAX_BYTES = 256 << 10
MAX_LINES = 1000
MAX_LINE = 500
"""What is longer is not read."""
AT_ONCE = 4_000
"""Characters of lines that are compiled together: RE2 bounds the size of a set of expressions."""

_UNKNOWN_SET = re.compile(r"\[[^\]]*(?:\[|--|&&|~~|\|\|)")
"""Character classes and what Python's own expressions warn of inside a set."""


@dataclass(frozen=True)
class IgnoreRules:
    """The rules that count inside one directory: those of the directories around it, and its own."""

    specs: tuple[tuple[int, GitIgnoreSpec], ...] = ()
    """From the outside in, each with how many names lead to its directory."""
    names: tuple[str, ...] = ()

    @classmethod
    def around(cls, guard: PathGuard, path: str) -> IgnoreRules:
        """Return what counts on the way from the repository's top to the directory *path*.

        Whoever starts in a directory that is left out wants to see it, so that nothing around it counts.
        """
        start = guard.real(path)
        top = repository_top(guard, start)
        if top is None:
            return cls()
        rules, here = cls()._with(guard, f"{top}/.git/info/exclude"), top
        for name in start.relative_to(top).parts:
            rules = rules._with(guard, f"{here}/{NAME}")
            if rules.leave_out(DirectoryEntry(name, "directory")):
                return cls()
            rules, here = cls(rules.specs, (*rules.names, name)), here / name
        return rules

    def inside(self, directory: GuardedDirectory, name: str = "") -> IgnoreRules:
        """Return what counts in *directory*, which is the entry *name* of the one before; or is the first, unnamed."""
        rules = IgnoreRules(self.specs, (*self.names, name) if name else self.names)
        with suppress(OSError), directory.open_file(NAME) as stream:
            return rules._and(stream)
        return rules

    def leave_out(self, entry: DirectoryEntry) -> bool:
        """Return whether the rules name this entry of the directory; the innermost rule that speaks of it decides."""
        end = "/" if entry.type == "directory" else ""
        for depth, spec in reversed(self.specs):
            found = spec.check_file("/".join((*self.names[depth:], entry.name)) + end).include
            if found is not None:
                return found
        return False

    def _with(self, guard: PathGuard, path: str) -> IgnoreRules:
        with suppress(OSError), guard.open_for_reading(path) as stream:
            return self._and(stream)
        return self

    def _and(self, stream: BinaryIO) -> IgnoreRules:
        lines = stream.read(MAX_BYTES).decode("utf-8-sig", errors="replace").split("\n")[:MAX_LINES]
        specs = map(_spec, _parts(lines))
        return IgnoreRules((*self.specs, *((len(self.names), spec) for spec in specs if spec)), self.names)


def _parts(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines that are compiled together."""
    part, size = list[str](), 0
    for line in lines:
        if len(line) > MAX_LINE:
            continue
        size += len(line)
        if size > AT_ONCE:
            yield part
            part, size = [], len(line)
        part.append(line)
    yield part


def _spec(lines: list[str]) -> GitIgnoreSpec | None:
    """Return the patterns, without malformed lines, which git skips too."""
    try:
        import re2  # noqa: PLC0415 - there is no wheel for every system
    except ImportError:
        return None  # Python's own expressions can take for ever on a hostile pattern
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only a tree with rules needs it

    library: Any = re2
    refused: tuple[type[Exception], ...] = (ValueError, re.error, library.error)

    def is_pattern(line: str) -> bool:
        try:
            GitIgnoreSpec.from_lines([line])
        except refused:
            return False
        return True

    lines = [line for line in lines if not _UNKNOWN_SET.search(line)]
    try:
        return GitIgnoreSpec.from_lines(lines)
    except refused:
        return GitIgnoreSpec.from_lines([line for line in lines if is_pattern(line)])
