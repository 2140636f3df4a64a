"""A model on loopback, in Ollama's wire format, whose answers depend on what it is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from chat.chat_desk import calls, text
from chat.wire_server import Scripted, WireServer, Write, serving

Reply = Callable[[str], Awaitable[str | Mapping[str, Any]]]
"""Returns the answer to a question: words, or the arguments of the tool that takes the answer."""


@asynccontextmanager
async def answering(reply: Reply) -> AsyncGenerator[WireServer]:
    """Yield a server whose model says what *reply* returns."""

    async def pour(write: Write) -> None:
        said = await reply(wire.requests[-1]["messages"][0]["content"])
        scripted = text("ollama", said) if isinstance(said, str) else calls("ollama", ("answer", dict(said)))
        await write("".join(scripted.pieces))

    async with serving(Scripted(pour=pour, kind="application/x-ndjson")) as wire:
        yield wire


def input_of(question: str) -> str:
    """Return what stands between the marks of a question."""
    return question.split(">\n", 1)[1].rsplit("\n</", 1)[0]
