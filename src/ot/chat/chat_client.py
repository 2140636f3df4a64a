"""ChatClient: a provider's service, as a conversation uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ot.chat.chat_tools import ToolAnswer
from ot.registry.tool_definitions import ToolDefinition

Message = Mapping[str, Any]
"""One entry of a conversation, in the form of the provider's API."""
Say = Callable[[str], None]
"""Receives each piece of the answer as it arrives."""


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
    """One whole reply of a model; *message* is its entry in the conversation, None if it said nothing."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    stop: str = ""
    message: Message | None = None


class ChatClient(Protocol):
    """The API of one provider, without retries."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply to *history*.

        Raises:
            ChatError: There is no reply; calls of a reply that was cut off are never returned.
        """
        ...

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return the messages that give the model the answers to the calls of one turn."""
        ...

    async def aclose(self) -> None:
        """Close what was opened."""
        ...
