"""What goes wrong between a model and its user, beside what the core's tools meet when they ask a model."""

from __future__ import annotations

from collections.abc import Sequence

from ot.errors import ChatError, ToolError, error
from ot.nearest_names import available


@error()
class NotOffered(ToolError):
    """A chat model asked for a tool that it was not given, whether or not it exists."""

    name: str
    offered: Sequence[str]

    def __str__(self) -> str:
        name = self.name[:100]
        return f"there is no tool '{name}'{available('tools', name, self.offered)}"


@error("{service} refused the request ({status}): {message}", hint=" ({hint})")
class ChatRefused(ChatError):
    """The model's service refused the request: a key, a model or a setting is wrong."""

    service: str
    status: int
    message: str
    hint: str = ""


@error("the reply of {service} cannot be used: {why}; nothing that it asked for was done")
class BadReply(ChatError):
    """A model's reply ended early or cannot be read; nothing that it asked for was done."""

    service: str
    why: str


@error("the model still asked for tools after {turns} turns (chat.turns); its last calls were not made")
class TooManyTurns(ChatError):
    """The model kept asking for tools."""

    turns: int
