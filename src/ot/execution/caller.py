"""Caller: who asks for a run or a call, and how to put a question to the person at the other end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: words, and the flat JSON schema of the answer, as an MCP elicitation has them."""

    message: str
    schema: Mapping[str, Any]
    kind: Literal["form", "consent", "url"] = "form"
    """Whether it asks for an answer of any form, for the consent to call a tool, or to open an address."""
    tool: str = ""
    """The tool that consent is asked for."""
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """What that tool would be called with."""
    url: str = ""
    """The address to open; "accept" means that the person agreed to it, not that what it is for has happened."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said; only an accepted answer has content."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


type AskUser = Callable[[Question], Awaitable[Answer]]
"""Puts a question to the user of one run, whose clock stands still meanwhile.

Raises CannotAsk when nobody can be asked over this connection, or nobody answered in time.
"""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    ``principal`` is whose results, statistics and quotas are used, ``connection`` the one that sessions and parked
    runs end with, ``client`` the name of the program at the other end.
    """

    principal: str
    connection: str = ""
    client: str = "unknown"
    ask: AskUser | None = None
    opens: bool = True
    """Whether the person who is asked can be shown an address to open."""
    groups: frozenset[str] = frozenset()
    """The groups of ``policy.groups`` that the principal belongs to."""
    admin: bool = True
    """Whether the principal may change what others use: the user of a process may."""

    def with_ask(self, ask: AskUser, opens: bool | None = None) -> Caller:
        """Return the same caller, who is asked by *ask*; every run makes some, so field by field."""
        opens = self.opens if opens is None else opens
        return Caller(self.principal, self.connection, self.client, ask, opens, self.groups, self.admin)

    @property
    def seat(self) -> str:
        """The key of what belongs to this principal on this connection alone."""
        return f"{self.principal}/{self.connection}" if self.connection else self.principal
