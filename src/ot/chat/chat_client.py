"""ChatClient: what the service of one provider does for a conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ot.chat.chat_tools import ToolAnswer
from ot.registry.tool_definitions import ToolDefinition

Message = Mapping[str, Any]
"""One entry of a conversation, as the provider's API has it."""
Say = Callable[[str], None]
"""Takes a piece of the answer as soon as it is there."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for; a *problem* says why it cannot be made."""

    id: str
    name: str
    arguments: Any
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the provider counts them."""

    input: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Return both together."""
        return Usage(self.input + other.input, self.output + other.output)


@dataclass(frozen=True, slots=True)
class Turn:
    """One whole reply of a model; *message* is how it stands in the conversation, None when it said nothing."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    stop: str = ""
    message: Message | None = None


class ChatClient(Protocol):
    """The API of one provider; nothing of it is tried twice here."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply to *history*.

        Raises:
            ChatError: There is none; a call in a reply that was cut is never returned.
        """
        ...

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return the messages that hand the answers to the calls of one turn back to the model."""
        ...

    async def aclose(self) -> None:
        """Close what was opened."""
        ...
