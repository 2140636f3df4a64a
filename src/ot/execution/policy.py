"""The user's say over single tools: allow, ask or deny, by pattern and by the tool's own word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal

from ot.execution.name_pattern import is_narrower
from ot.registry.tool import Tool

Action = Literal["deny", "ask", "allow"]
STRICTEST: tuple[Action, ...] = ("deny", "ask", "allow")
DEFAULT = (
    "tools that say that they are read-only run; others of proxied servers ask; tools of other packs run, "
    "unless they say that they are destructive: those ask"
)
"""What happens to a tool that no pattern names, in words."""
MOST_NAMES = 10_000
"""Names whose verdict is kept: patterns are compared once a tool, not once a call."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to happen to a call, and the pattern that says so; no pattern is the tool's own word."""

    action: Action
    pattern: str = ""


class Policy:
    """Decides at the door what happens to a call of a tool."""

    def __init__(
        self,
        *,
        allow: Sequence[str] = (),
        ask: Sequence[str] = (),
        deny: Sequence[str] = (),
        exact_names: bool = False,
    ) -> None:
        """Go by patterns of ``pack.tool``; *exact_names* demands full parameter names of destructive tools."""
        named: tuple[tuple[Action, Sequence[str]], ...] = (("deny", deny), ("ask", ask), ("allow", allow))
        self._verdicts = tuple(Verdict(action, pattern) for action, patterns in named for pattern in patterns)
        self._exact_names = exact_names
        self._by_name = lru_cache(maxsize=MOST_NAMES)(self._of_patterns)

    def verdict(self, tool: Tool) -> Verdict:
        """Return what is to happen: what the patterns say of its name, or else its own word."""
        return self._by_name(tool.full_name) or _own_word(tool)

    def _of_patterns(self, name: str) -> Verdict | None:
        """Return the narrowest pattern's verdict, and of several the strictest; what is not proved wider stays."""
        found = [verdict for verdict in self._verdicts if fnmatchcase(name, verdict.pattern)]
        narrowest = [one for one in found if not any(is_narrower(other.pattern, one.pattern) for other in found)]
        return min(narrowest, key=lambda verdict: STRICTEST.index(verdict.action), default=None)

    def wants_exact_names(self, tool: Tool) -> bool:
        """Return whether a call of *tool* must write its parameters' names out."""
        return self._exact_names and tool.destructive


def _own_word(tool: Tool) -> Verdict:
    if tool.read_only:
        return Verdict("allow")
    asks = tool.destructive or tool.source.startswith("proxy")
    return Verdict("ask" if asks else "allow")
