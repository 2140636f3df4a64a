"""AskUser: how a call that is under way puts a question to the person at the other end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: words, and the flat JSON schema of the answer, as an MCP elicitation has them."""

    message: str
    schema: Mapping[str, Any]
    kind: Literal["form", "consent"] = "form"
    """Whether it asks for an answer of any form, or for the consent to call a tool."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said; only an accepted answer has content."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])


class AskUser(Protocol):
    """Puts a question to the user of one run; the run's clock stands still meanwhile."""

    async def __call__(self, question: Question) -> Answer:
        """Return the answer.

        Raises:
            CannotAsk: Nobody can be asked over this connection, or nobody answered in time.
        """
        ...
