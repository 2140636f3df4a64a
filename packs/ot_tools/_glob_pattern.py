"""GlobPattern: matches paths name by name, so that a walk enters only directories that can hold a match."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate

MAX_PATTERN = 1000
MAX_ALTERNATIVES = 100

SKIPPED = frozenset({".git"})
"""Names that only a pattern that spells them out matches: thousands of files that nobody means by ``**``."""

_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")

State = tuple[int, int]
"""Which alternative, and how many of its parts are used up."""


@dataclass(frozen=True)
class _Part:
    """What one name must look like; without an expression it is ``**``, any number of directories."""

    text: str
    expression: re.Pattern[str] | None

    def matches(self, name: str) -> bool:
        if name in SKIPPED:
            return name == self.text
        return self.expression is None or self.expression.match(name) is not None


class GlobPattern:
    """A pattern with ``*``, ``?``, ``[a-z]``, ``{a,b}`` and ``**``, compared with case."""

    def __init__(self, pattern: str) -> None:
        """Read *pattern*; raise ValueError if it is not a relative one."""
        self._alternatives = [_read(text) for text in _spell_out(_check(pattern))]

    def start(self) -> frozenset[State]:
        """Return the states before the first name."""
        return self._close({(index, 0) for index in range(len(self._alternatives))})

    def step(self, states: frozenset[State], name: str) -> frozenset[State]:
        """Return the states after *name*; none means that nothing below can match."""
        after: set[State] = set()
        for index, used in states:
            parts = self._alternatives[index]
            if used < len(parts) and parts[used].matches(name):
                after.add((index, used if parts[used].expression is None else used + 1))
        return self._close(after)

    def spells(self, states: frozenset[State], name: str) -> bool:
        """Return whether the pattern has *name* at this place in so many words."""
        parts = ((self._alternatives[index], used) for index, used in states)
        return any(used < len(texts) and texts[used].text == name for texts, used in parts)

    def complete(self, states: frozenset[State]) -> bool:
        """Return whether the names so far are a match."""
        return any(used == len(self._alternatives[index]) for index, used in states)

    def _close(self, states: set[State]) -> frozenset[State]:
        """Add the states in which ``**`` stands for no directory at all."""
        todo = list(states)
        while todo:
            index, used = todo.pop()
            parts = self._alternatives[index]
            if used < len(parts) and parts[used].expression is None and (index, used + 1) not in states:
                states.add((index, used + 1))
                todo.append((index, used + 1))
        return frozenset(states)


def _check(pattern: str) -> str:
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has 1 to {MAX_PATTERN:,} characters, this one has {len(pattern):,}")
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise ValueError(f"{pattern!r} must stay below the directory: give where to start as path=")
    if pattern.endswith("/"):
        raise ValueError(f"{pattern!r} names a directory: for the files below it add '**'")
    return pattern


def _spell_out(pattern: str) -> list[str]:
    """Return the pattern without braces: one text for each choice."""
    todo, done = [pattern], list[str]()
    while todo:
        text = todo.pop()
        if found := _BRACES.search(text):
            todo += [text[: found.start()] + choice + text[found.end() :] for choice in found[1].split(",")]
        else:
            done.append(text)
        if len(todo) + len(done) > MAX_ALTERNATIVES:
            raise ValueError(f"{pattern!r} means more than {MAX_ALTERNATIVES} patterns: write fewer braces")
    return done


def _read(text: str) -> list[_Part]:
    names = [name for name in text.split("/") if name not in ("", ".")]
    return [_Part(name, None if name == "**" else re.compile(translate(name))) for name in names]
