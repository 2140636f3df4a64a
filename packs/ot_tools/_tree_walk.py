"""Walks what lies below a directory, in an order that does not change, until a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ot.execution.tool_context import WorkAllowance
from ot.files.guarded_directory import DirectoryEntry, GuardedDirectory
from ot_tools._glob_pattern import GlobPattern, State
from ot_tools._ignore_rules import IgnoreRules

MAX_DEPTH = 64
"""Directories inside each other that a walk enters; each one is kept open on the way down."""
NAME_COST, ENTRY_COST = 5, 15
"""What it costs to read a name of a directory, and to look at the entry."""


@dataclass(frozen=True)
class WalkDeadline:
    """When a walk must end by itself, and how much of it may be done in the server's process."""

    seconds: float
    until: float
    setting: str
    advice: str
    allowance: WorkAllowance | None = None

    @classmethod
    def after(
        cls,
        seconds: float,
        setting: str = "tools.file.search_seconds",
        advice: str = "start deeper with path=, or write a closer pattern",
        allowance: WorkAllowance | None = None,
    ) -> WalkDeadline:
        """Return the deadline that lies *seconds* ahead, by a *setting*, with *advice* for who meets it."""
        return cls(seconds, time.monotonic() + seconds, setting, advice, allowance)

    def check(self) -> None:
        """Raise TimeoutError when the time is over."""
        if time.monotonic() > self.until:
            raise TimeoutError(f"not done after {self.seconds:g} s ({self.setting}): {self.advice}")

    def spend(self, cost: float) -> None:
        """Raise TooMuchHere when the next step would hold up the server."""
        if self.allowance:
            self.allowance.spend(cost)

    def read_name(self) -> None:
        """Note that a name of a directory was read: one directory can hold millions."""
        self.check()
        self.spend(NAME_COST)


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry that a walk has met, in the directory that holds it, which is open until the walk goes on."""

    directory: GuardedDirectory
    entry: DirectoryEntry
    path: str


@dataclass(frozen=True)
class Walk[S]:
    """How a walk goes on below a directory; links are not followed, what is closed to us or gone meanwhile is left out.

    *step* says for each name with which state to go on: None passes over the name, a false one stays out of it.
    """

    step: Callable[[S, str], S | None]
    deadline: WalkDeadline
    spelled: Callable[[S, str], bool] = lambda _, name: False
    """Whether a name was asked for in so many words, so that no rule leaves it out."""

    def below(
        self, directory: GuardedDirectory, path: str, state: S, rules: IgnoreRules | None = None
    ) -> Iterator[tuple[FoundEntry, S]]:
        """Yield what is below *directory*, but for what the *rules* leave out."""
        return self._below(directory, path, state, rules and rules.inside(directory, spend=self.deadline.spend), 1)

    def _below(
        self, directory: GuardedDirectory, path: str, state: S, rules: IgnoreRules | None, depth: int
    ) -> Iterator[tuple[FoundEntry, S]]:
        if depth > MAX_DEPTH:
            raise ValueError(f"{path[:200]!r} lies {depth} directories deep: start nearer to it with path=")
        for entry in self._entries(directory, path, depth):
            self.deadline.check()
            self.deadline.spend(ENTRY_COST)
            after = self.step(state, entry.name)
            if after is None:
                continue
            inner = rules
            if rules:
                self.deadline.spend(rules.cost(entry))
            if rules and rules.leave_out(entry):
                if not self.spelled(state, entry.name):
                    continue
                inner = IgnoreRules()  # whoever names it wants all of it
            at = entry.name if path in (".", "./") else f"{path.rstrip('/')}/{entry.name}"
            yield FoundEntry(directory, entry, at), after
            if after and entry.type == "directory" and (below := _child(directory, entry.name)):
                with below:
                    known = inner and inner.inside(below, entry.name, spend=self.deadline.spend)
                    yield from self._below(below, at, after, known, depth + 1)

    def _entries(self, directory: GuardedDirectory, path: str, depth: int) -> list[DirectoryEntry]:
        try:
            return directory.entries(self.deadline.read_name)
        except TimeoutError:
            raise
        except OSError as error:
            if depth > 1:
                return []
            raise PermissionError(f"{path!r} cannot be listed: {error.strerror}") from None


def matching(
    directory: GuardedDirectory,
    path: str,
    pattern: GlobPattern,
    deadline: WalkDeadline,
    rules: IgnoreRules | None = None,
) -> Iterator[FoundEntry]:
    """Yield what is below *directory* and fits the pattern; only directories that can hold a match are entered."""

    def step(states: frozenset[State], name: str) -> frozenset[State] | None:
        return pattern.step(states, name) or None

    walk = Walk(step, deadline, pattern.spells)
    for found, states in walk.below(directory, path, pattern.start(), rules):
        if pattern.complete(states):
            yield found


def _child(directory: GuardedDirectory, name: str) -> GuardedDirectory | None:
    try:
        return directory.child(name)
    except OSError:
        return None
