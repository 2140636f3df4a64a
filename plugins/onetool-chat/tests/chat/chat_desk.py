"""A conversation with a scripted model of either provider, about the tools of a real Workspace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chat.wire_server import (
    Scripted,
    WireServer,
    anthropic_calls,
    anthropic_text,
    ollama_calls,
    ollama_text,
    openai_calls,
    openai_text,
    serving,
)
from onetool_chat.anthropic_client import AnthropicClient
from onetool_chat.chat_client import ChatClient, ToolCall
from onetool_chat.chat_tools import ChatTools, ToolAnswer
from onetool_chat.conversation import ChatWatcher, Conversation
from onetool_chat.ollama_client import OllamaClient
from onetool_chat.openai_client import OpenAIClient
from onetool_chat.retries import Retries
from onetool_chat.settings import Chat
from ot.registry.tool_definitions import ToolDefinitions
from ot.workspace import Workspace
from run_app import Calls, running_app

LAMP = '''
    """A lamp, and things that go wrong."""

    import asyncio
    import socket

    pack = "lamp"
    __all__ = ["away", "broken", "hang", "switch"]


    def switch(*, room: str, on: bool = True) -> dict:
        """Switch the lamp of a room on or off.

        Args:
            room: Where the lamp is
            on: Whether it is to be on
        """
        return {"room": room, "on": on}


    def broken(*, room: str) -> str:
        """Fail."""
        raise RuntimeError(f"the lamp of {room} is broken")


    async def hang() -> str:
        """Never come back."""
        await asyncio.sleep(600)
        return "late"


    def away() -> str:
        """Ask a service that is not there."""
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            socket.create_connection(taken.getsockname(), timeout=2)
        return "there"
'''

QUICK = Retries(pause_seconds=0.01)
PROVIDERS = ("anthropic", "ollama", "openai")


class Watched(ChatWatcher):
    """A watcher that keeps what it saw."""

    def __init__(self) -> None:
        self.words = ""
        self.forgotten: list[tuple[int, int]] = []
        self.calls: list[ToolCall] = []
        self.answers: dict[str, ToolAnswer] = {}
        self.seconds: dict[str, float] = {}
        self.first_answer = asyncio.Event()
        self.first_words = asyncio.Event()

    def take_text(self, text: str) -> None:
        self.words += text
        self.first_words.set()

    def forgot(self, questions: int, answers: int) -> None:
        self.forgotten.append((questions, answers))

    def calling(self, call: ToolCall) -> None:
        self.calls.append(call)

    def note_call(self, call: ToolCall, answer: ToolAnswer, seconds: float) -> None:
        self.answers[call.name] = answer
        self.seconds[call.name] = seconds
        self.first_answer.set()


def text(provider: str, *words: str) -> Scripted:
    """Return the answer of a model in words."""
    return {"anthropic": anthropic_text, "ollama": ollama_text, "openai": openai_text}[provider](*words)


def calls(provider: str, *wanted: tuple[str, object], first: int = 1) -> Scripted:
    """Return the answer of a model that asks for tools."""
    if provider == "ollama":
        return ollama_calls(*wanted)
    with_ids = [(f"toolu_{n}", name, given) for n, (name, given) in enumerate(wanted, first)]
    return anthropic_calls(*with_ids) if provider == "anthropic" else openai_calls(*with_ids)


def results(provider: str, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the results of tools that the last message, or messages, of a request carry."""
    if provider != "anthropic":
        return [message for message in request["messages"] if message["role"] == "tool"]
    blocks = [
        block for message in request["messages"] if type(message["content"]) is list for block in message["content"]
    ]
    return [{**block, "tool_name": block["tool_use_id"]} for block in blocks if block["type"] == "tool_result"]


def client_of(provider: str, url: str, **options: Any) -> ChatClient:
    if provider == "anthropic":
        return AnthropicClient(Chat(anthropic_url=url, **options), "sk-test-key")
    if provider == "ollama":
        return OllamaClient(Chat(ollama_url=url, **options))
    return OpenAIClient(Chat(provider="openai", openai_url=url, **options), "sk-test-key")


@dataclass(frozen=True)
class Desk:
    """Everything that a test of a conversation looks at."""

    app: Workspace
    talk: Conversation
    seen: Watched
    observed: Calls
    wire: WireServer


@asynccontextmanager
async def talking(
    directory: Path,
    provider: str,
    *script: Scripted,
    packs: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    client: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Desk]:
    """Yield a conversation with a model that follows *script*, and is given the pack ``lamp`` and the tool ``run``."""
    observed, seen = Calls(), Watched()
    async with (
        serving(*script) as wire,
        running_app(directory, packs or {"lamp": LAMP}, config, observers=[observed]) as app,
    ):
        tools = ChatTools(app, ToolDefinitions.choose(app.picture.registry, ["lamp"]), run="Run a program")
        talker = client_of(provider, wire.url, **(client or {}))
        try:
            yield Desk(app, Conversation(talker, tools, retries=QUICK, watcher=seen, **options), seen, observed, wire)
        finally:
            await talker.aclose()


def require_valid(history: list[Mapping[str, Any]]) -> None:
    """Assert what APIs with ids demand: unique ones, and after every call its answer, once."""
    ids: set[str] = set()
    for place, message in enumerate(history):
        if wanted := [call["id"] for call in message.get("tool_calls") or ()]:
            assert len(set(wanted)) == len(wanted) and not ids & set(wanted), "ids are not unique"
            ids |= set(wanted)
            answers = [message.get("tool_call_id") for message in history[place + 1 : place + 1 + len(wanted)]]
            assert answers == wanted, "every call has its answer, in the next messages"
        blocks = message["content"] if isinstance(message["content"], list) else []
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert len(set(called)) == len(called) and not ids & set(called), "ids are not unique"
        ids |= set(called)
        if called:
            answers = [block["tool_use_id"] for block in history[place + 1]["content"]]
            assert answers == called, "every call has its answer, in the next message"
    json.dumps(history)
