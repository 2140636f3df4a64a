"""The user's say over single tools: allow, ask or deny, by pattern and by the tool's own word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from types import MappingProxyType
from typing import Literal

from ot.registry.tool import Tool

Action = Literal["deny", "ask", "allow"]
STRICTEST: tuple[Action, ...] = ("deny", "ask", "allow")
DEFAULT = (
    "tools marked as read-only run; other tools of proxied servers ask; tools of other packs run, "
    "unless they are marked as destructive: those ask"
)
"""What happens to a tool that no pattern names, in words."""
MAX_NAMES = 10_000
"""Names whose verdict is kept: patterns are compared once a tool, not once a call."""
PIECES = re.compile(r"\*+|\[!?+\]?+[^\]]*+\]|.", re.DOTALL)
"""A run of stars, a whole bracket, or one character, divided as ``fnmatch`` does."""
MAX_STEPS = 500
"""Where it would take more, it is not proved; patterns that people write take a few dozen."""

States = frozenset[int]
type PatternLists = Mapping[Action, Sequence[str]]
"""By list, its patterns."""
NOBODYS: frozenset[str] = frozenset()
NO_GROUPS: Mapping[str, PatternLists] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """What is to happen to a call, and the pattern that says so; no pattern is the tool's own word."""

    action: Action
    pattern: str = ""
    group: str = ""
    """Whose pattern it is; everyone's without one."""
    need: str = ""
    """The tool that the pattern matches, where it is not the one that is called but one whose permission that needs."""

    @property
    def rule(self) -> str:
        """The list that the pattern is in, as the configuration names it."""
        return f"policy.groups.{self.group}.{self.action}" if self.group else f"policy.{self.action}"


ASKS, ALLOWED = PolicyVerdict("ask"), PolicyVerdict("allow")


class ToolPolicy:
    """Decides at the door what happens to a call of a tool."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        deny: Sequence[str] = (),
        exact_names: bool = False,
        groups: Mapping[str, PatternLists] = NO_GROUPS,
        read_only: Sequence[str] = (),
    ) -> None:
        """Go by patterns of ``pack.tool``; *exact_names* demands full parameter names of destructive tools.

        The patterns of *groups* count for their members, beside those of everyone. Tools of *read_only* are known to
        change nothing, whatever they say of themselves.
        """
        self._everyones = tuple(_verdicts({"allow": allow, "ask": ask, "deny": deny}))
        self._of_groups = {name: tuple(_verdicts(lists, name)) for name, lists in groups.items()}
        self._known = frozenset(groups)
        self._exact_names = exact_names
        self._read_only = tuple(read_only)
        self._by_name = lru_cache(maxsize=MAX_NAMES)(self._of_patterns)

    def verdict(self, tool: Tool, groups: frozenset[str] = NOBODYS) -> PolicyVerdict:
        """Return the verdict for a member of *groups*: that of the patterns, or else the tool's own hint.

        What patterns say of the tools whose permission it needs can be stricter than that, and never laxer.
        """
        mine = groups & self._known if groups else groups
        own, needed = self._by_name(tool.full_name, tool.needs, mine)
        verdict = own or _own_word(tool)
        return needed if needed and _strictness(needed) <= _strictness(verdict) else verdict

    def _of_patterns(
        self, name: str, needs: tuple[str, ...], groups: frozenset[str]
    ) -> tuple[PolicyVerdict | None, PolicyVerdict | None]:
        """Return the verdict of the name's patterns, and the verdict together with those of the tools it needs.

        The latter only where a pattern decides that does not match the name itself.
        """
        counting = [*self._everyones, *(verdict for group in sorted(groups) for verdict in self._of_groups[group])]
        own = [verdict for verdict in counting if fnmatchcase(name, verdict.pattern)]
        through = [
            replace(verdict, need=need)
            for verdict in counting
            if verdict not in own
            for need in needs
            if fnmatchcase(need, verdict.pattern)
        ]
        # Of those that are equally strict the need's goes first: to allow the tool by its name would not be enough.
        both = _narrowest([*through, *own]) if through else None
        return _narrowest(own), both if both and both.need else None

    def wants_exact_names(self, tool: Tool) -> bool:
        """Return whether a call of *tool* must write its parameters' names out."""
        return self._exact_names and tool.destructive

    def is_read_only(self, name: str) -> bool:
        """Return whether the user says that the tool changes nothing."""
        return any(fnmatchcase(name, pattern) for pattern in self._read_only)


def _verdicts(lists: PatternLists, group: str = "") -> Iterable[PolicyVerdict]:
    return (PolicyVerdict(action, pattern, group) for action, patterns in lists.items() for pattern in patterns)


def _narrowest(found: Sequence[PolicyVerdict]) -> PolicyVerdict | None:
    """Return the narrowest pattern's verdict, and of several the strictest; what is not proved wider stays."""
    narrowest = [one for one in found if not any(is_narrower(other.pattern, one.pattern) for other in found)]
    return min(narrowest, key=_strictness, default=None)


def _strictness(verdict: PolicyVerdict) -> int:
    return STRICTEST.index(verdict.action)


def _own_word(tool: Tool) -> PolicyVerdict:
    asks = not tool.read_only and (tool.destructive or tool.source.startswith("proxy"))
    return ASKS if asks else ALLOWED


def why(verdict: PolicyVerdict, tool: Tool) -> str:
    """Say where the *verdict* on *tool* comes from."""
    if verdict.pattern:
        return f"{verdict.rule}: {verdict.pattern!r}" + (
            f"; it needs the permission of {verdict.need}" if verdict.need else ""
        )
    if tool.read_only:
        return "it says that it is read-only"
    if tool.destructive:
        return "it says that it is destructive"
    return f"it does not say that it is {'read-only' if verdict.action == 'ask' else 'destructive'}"


def holds(wide: str, narrow: str) -> bool:
    """Return whether *wide* is proved, over every possible name, to match all that *narrow* matches."""
    outer, inner = PIECES.findall(wide), PIECES.findall(narrow)
    letters = _letters(wide + narrow)
    start = (_reach(inner, [0]), _reach(outer, [0]))
    seen, waiting = {start}, [start]
    while waiting:
        mine, theirs = waiting.pop()
        if len(inner) in mine and len(outer) not in theirs:
            return False  # a name ends here that only the narrow one matches
        after = {(_after(inner, mine, letter), _after(outer, theirs, letter)) for letter in letters}
        new = {pair for pair in after if pair[0]} - seen
        seen |= new
        waiting += new
        if len(seen) > MAX_STEPS:
            return False
    return True


def is_narrower(one: str, other: str) -> bool:
    """Return whether it is proved that *other* matches all that *one* matches, and more."""
    return holds(other, one) and not holds(one, other)


def _letters(patterns: str) -> list[str]:
    """Return a character of every kind that the patterns can tell apart: those in them, and their neighbours."""
    codes = {ord(letter) + step for letter in (*patterns, "a") for step in (-1, 0, 1)}
    return [chr(code) for code in codes if 0 <= code <= 0x10FFFF]


def _reach(pieces: list[str], places: Iterable[int]) -> States:
    """Return *places* with those that stars lead on to without a letter."""
    found = set(places)
    for place, piece in enumerate(pieces):
        if place in found and piece.startswith("*"):
            found.add(place + 1)
    return frozenset(found)


def _after(pieces: list[str], places: States, letter: str) -> States:
    """Return the places that *letter* leads to from *places*."""
    here = [place for place in places if place < len(pieces)]
    stay = [place for place in here if pieces[place].startswith("*")]
    steps = [place + 1 for place in here if place not in stay and fnmatchcase(letter, pieces[place])]
    return _reach(pieces, [*stay, *steps])
