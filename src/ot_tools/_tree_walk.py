"""Walks what lies below a directory, in an order that does not change, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ot.files.guarded_directory import DirectoryEntry, GuardedDirectory
from ot_tools._glob_pattern import GlobPattern, State

MAX_DEPTH = 64
"""Directories inside each other that a walk enters; each one is kept open on the way down."""


@dataclass(frozen=True)
class WalkDeadline:
    """When a walk must end by itself: the thread of a tool cannot be stopped from outside."""

    seconds: float
    until: float

    @classmethod
    def after(cls, seconds: float) -> WalkDeadline:
        """Return the deadline that lies *seconds* ahead."""
        return cls(seconds, time.monotonic() + seconds)

    def check(self) -> None:
        """Raise TimeoutError when the time is over."""
        if time.monotonic() > self.until:
            limit = f"{self.seconds:g} s (tools.file.search_seconds)"
            raise TimeoutError(f"not done after {limit}: start deeper with path=, or write a closer pattern")


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry that a walk has met, in the directory that holds it, which is open until the walk goes on."""

    directory: GuardedDirectory
    entry: DirectoryEntry
    path: str


def walk[S](
    directory: GuardedDirectory, path: str, state: S, step: Callable[[S, str], S | None], deadline: WalkDeadline
) -> Iterator[tuple[FoundEntry, S]]:
    """Yield what is below *directory*; links are not followed, what is closed to us or gone meanwhile is left out.

    *step* says for each name with which state to go on: None passes over the name, a false one stays out of it.
    """
    return _walk(directory, path, state, step, deadline, 1)


def _walk[S](
    directory: GuardedDirectory,
    path: str,
    state: S,
    step: Callable[[S, str], S | None],
    deadline: WalkDeadline,
    depth: int,
) -> Iterator[tuple[FoundEntry, S]]:
    if depth > MAX_DEPTH:
        raise ValueError(f"{path[:200]!r} lies {depth} directories deep: start nearer to it with path=")
    for entry in _entries(directory, path, depth):
        deadline.check()
        after = step(state, entry.name)
        if after is None:
            continue
        at = entry.name if path in (".", "./") else f"{path.rstrip('/')}/{entry.name}"
        yield FoundEntry(directory, entry, at), after
        if after and entry.type == "directory" and (below := _child(directory, entry.name)):
            with below:
                yield from _walk(below, at, after, step, deadline, depth + 1)


def matching(
    directory: GuardedDirectory, path: str, pattern: GlobPattern, deadline: WalkDeadline
) -> Iterator[FoundEntry]:
    """Yield what is below *directory* and fits the pattern; only directories that can hold a match are entered."""

    def step(states: frozenset[State], name: str) -> frozenset[State] | None:
        return pattern.step(states, name) or None

    for found, states in walk(directory, path, pattern.start(), step, deadline):
        if pattern.complete(states):
            yield found


def _entries(directory: GuardedDirectory, path: str, depth: int) -> list[DirectoryEntry]:
    try:
        return directory.entries()
    except OSError as error:
        if depth > 1:
            return []
        raise PermissionError(f"{path!r} cannot be listed: {error.strerror}") from None


def _child(directory: GuardedDirectory, name: str) -> GuardedDirectory | None:
    try:
        return directory.child(name)
    except OSError:
        return None
