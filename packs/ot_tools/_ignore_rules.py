"""IgnoreRules: what the ``.gitignore`` files of a tree leave out, directory by directory, as git reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from math import inf
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
MAX_PATTERNS = 20_000
"""Characters of patterns in one file, without comments; what is longer is not read."""
MAX_TOGETHER = 40_000
"""Characters of all patterns that count in one directory; files further inside are not read."""
AT_ONCE = 4_000
"""Characters of lines that are compiled together: RE2 bounds the size of a set of expressions."""
KEPT = 40_000
"""Characters of rules that stay compiled; a set of RE2 may take 8 MiB."""
LINE_COST, CHARACTER_COST, SET_COST = 50, 2, 7
"""What a line and a character cost when they are compiled, once, and a set each time when it is applied."""
CHECKED_AT_ONCE = 4_000
"""Characters of patterns times characters of a path that RE2 compares for a cost of one."""

Spend = Callable[[float], None]
"""Takes what the next step costs, and raises where it may not be done here."""

_UNKNOWN_SET = re.compile(r"\[[^\]]*(?:\[|--|&&|~~|\|\|)")
"""Character classes and what Python's own expressions warn of inside a set."""


@dataclass(frozen=True)
class IgnoreRules:
    """The rules that count inside one directory: those of the directories around it, and its own."""

    specs: tuple[tuple[int, GitIgnoreSpec], ...] = ()
    """From the outside in, each with how many names lead to its directory."""
    names: tuple[str, ...] = ()
    characters: int = 0
    """How many all patterns have."""

    @classmethod
    def around(cls, guard: PathGuard, path: str, spend: Spend) -> IgnoreRules:
        """Return the rules from the repository's top down to the directory *path*.

        If the start is in an ignored directory, the user wants to see it, so rules around it do not count.
        """
        start = guard.real(path)
        top = repository_top(guard, start)
        if top is None:
            return cls()
        rules, here = cls()._with(guard, f"{top}/.git/info/exclude", spend), top
        for name in start.relative_to(top).parts:
            rules = rules._with(guard, f"{here}/{NAME}", spend)
            if rules.leave_out(DirectoryEntry(name, "directory")):
                return cls()
            rules, here = replace(rules, names=(*rules.names, name)), here / name
        return rules

    def inside(self, directory: GuardedDirectory, name: str = "", *, spend: Spend) -> IgnoreRules:
        """Return the rules in *directory*, the entry *name* of the one before, or the first, unnamed."""
        rules = replace(self, names=(*self.names, name)) if name else self
        with suppress(OSError), directory.open_file(NAME) as stream:
            return rules._and(stream, spend)
        return rules

    def cost(self, entry: DirectoryEntry) -> float:
        """Return the cost of asking whether the entry is ignored."""
        length = sum(map(len, self.names)) + len(entry.name)
        return SET_COST * len(self.specs) + self.characters * length / CHECKED_AT_ONCE

    def leave_out(self, entry: DirectoryEntry) -> bool:
        """Return whether the rules name this entry of the directory; the innermost rule that speaks of it decides."""
        end = "/" if entry.type == "directory" else ""
        for depth, spec in reversed(self.specs):
            found = spec.check_file("/".join((*self.names[depth:], entry.name)) + end).include
            if found is not None:
                return found
        return False

    def _with(self, guard: PathGuard, path: str, spend: Spend) -> IgnoreRules:
        with suppress(OSError), guard.open_for_reading(path) as stream:
            return self._and(stream, spend)
        return self

    def _and(self, stream: BinaryIO, spend: Spend) -> IgnoreRules:
        if not _has_re2():
            return self  # Python's own expressions can take for ever on a hostile pattern
        lines = tuple(_patterns(stream.read(MAX_BYTES).decode("utf-8-sig", errors="replace")))
        size = sum(map(len, lines))
        if not lines or self.characters + size > MAX_TOGETHER:
            return self
        if (specs := _compiled.get(lines)) is None:
            # More than one set is too much for the server's process, however small the walk.
            spend(len(lines) * LINE_COST + size * CHARACTER_COST if size <= AT_ONCE else inf)
            specs = _compile(lines)
        placed = ((len(self.names), spec) for spec in specs)
        return IgnoreRules((*self.specs, *placed), self.names, self.characters + size)


def _has_re2() -> bool:
    try:
        import_module("re2")  # there is no wheel for every system
    except ImportError:
        return False
    return True


def _patterns(text: str) -> Iterator[str]:
    """Yield the lines that are patterns, as many as may be read."""
    left = MAX_PATTERNS
    for line in text.split("\n")[:MAX_LINES]:
        if line.strip() and not line.startswith("#") and len(line) <= MAX_LINE:
            left -= len(line)
            if left < 0:
                return
            yield line


_compiled: dict[tuple[str, ...], tuple[GitIgnoreSpec, ...]] = {}
"""Rules by their lines: they are the same for the same lines, whatever file these are in."""


def _compile(lines: tuple[str, ...]) -> tuple[GitIgnoreSpec, ...]:
    """Return the rules in sets, and keep them."""
    parts, size = [list[str]()], 0
    for line in lines:
        size += len(line)
        if size > AT_ONCE:
            parts.append([])
            size = len(line)
        parts[-1].append(line)
    specs = tuple(map(_spec, parts))
    _compiled[lines] = specs
    while sum(len(line) for kept in _compiled.copy() for line in kept) > KEPT:
        _compiled.pop(next(iter(_compiled)), None)
    return specs


def _spec(lines: list[str]) -> GitIgnoreSpec:
    """Return the patterns, without malformed lines, which git skips too."""
    import re2  # noqa: PLC0415 - there is no wheel for every system
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
