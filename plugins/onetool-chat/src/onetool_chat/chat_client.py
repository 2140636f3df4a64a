"""ChatClient: a provider's service, as a conversation uses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from onetool_chat.chat_tools import ToolAnswer
from ot.registry.tool_definitions import ToolDefinition

Message = Mapping[str, Any]
"""One entry of a conversation, in the form of the provider's API."""
Say = Callable[[str], None]
"""Receives each piece of the answer as it arrives."""
TWICE = "the call was not made: its id stands for another call of this conversation; make it again"
UNREADABLE = "the call was not made: its arguments are not a whole JSON object; make it again"
CUT = "the call was not made: the reply was cut off at chat.max_tokens; make it again with less"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a model asks for; a *problem* says why it cannot be made."""

    id: str
    name: str
    arguments: Any
    problem: str = ""


def whole_call(id: object, name: object, written: str, used: set[str], *, cut: bool) -> ToolCall:
    """Return the call whose arguments are *written*, which adds its id to those *used*; a *cut* one is not made."""
    own = id if isinstance(id, str) and id and id not in used else f"toolu_again_{len(used)}"
    used.add(own)
    try:
        found: Any = json.loads(written.strip() or "{}")
    except (ValueError, RecursionError):
        found = None
    arguments = cast("dict[str, Any]", found) if isinstance(found, dict) else None
    problem = CUT if cut else TWICE if own != id else UNREADABLE if arguments is None else ""
    return ToolCall(own, str(name or "unnamed")[:128], arguments, problem)


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
    def model(self) -> str: ...

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply to *history*, or raise ChatError: of one that was cut off nothing is done."""
        ...

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return the messages that give the model the answers to the calls of one turn."""
        ...

    async def aclose(self) -> None: ...
