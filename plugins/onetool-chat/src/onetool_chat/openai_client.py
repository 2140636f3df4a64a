"""OpenAIClient: OpenAI's chat completions, streamed; LM Studio, vLLM, llama.cpp and OpenRouter speak it too."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from onetool_chat.chat_client import Message, Say, ToolCall, Turn, Usage, whole_call
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.errors import BadReply
from onetool_chat.model_providers import MODEL_PROVIDERS
from onetool_chat.service_errors import stream_reply
from onetool_chat.settings import Chat
from ot.errors import MissingExtra
from ot.registry.tool_definitions import ToolDefinition

CONNECT_SECONDS = 5.0
NO_KEY = "none"
"""The library wants one; a server on this machine mostly does not look at it."""


class OpenAIClient:
    """Asks a model behind an OpenAI-compatible address; each request is made once."""

    def __init__(self, chat: Chat, key: str = "") -> None:
        """Ask as *chat* says, with *key*; a reply that pauses longer than its ``gap_seconds`` has ended."""
        try:
            import openai  # noqa: PLC0415 - costly to import, and an extra
        except ImportError:
            raise MissingExtra("chat with OpenAI-compatible models", "chat") from None
        self._provider = MODEL_PROVIDERS[chat.provider]
        self.model = chat.model or self._provider.model
        self._url = chat.openai_url or self._provider.url
        self._system: list[Message] = [{"role": "system", "content": chat.system}] if chat.system else []
        # OpenAI's newer models refuse the older name, which is the one that other servers know.
        longest = "max_completion_tokens" if chat.provider == "openai" else "max_tokens"
        self._asked = {"model": self.model, longest: chat.max_tokens, "stream_options": {"include_usage": True}}
        self._client = openai.AsyncOpenAI(
            api_key=key or NO_KEY,
            base_url=self._url,
            max_retries=0,  # Retries is the one layer that tries again
            timeout=openai.Timeout(chat.gap_seconds, connect=CONNECT_SECONDS),
            # A service must not send on elsewhere what it was asked; the library would follow it anywhere.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        asked: dict[str, Any] = {**self._asked, "messages": [*self._system, *history], "stream": True}
        asked |= {"tools": [tool.for_completions() for tool in tools]} if tools else {}
        reply = _CompletionReply(say)
        # What it returns depends on `stream`, which no type sees in a mapping.
        create: Any = self._client.chat.completions.create
        async with stream_reply(self._provider, self._url, create(**asked), "is the model's name right?") as chunks:
            async for chunk in chunks:
                reply.take(chunk)
        if not reply.stop:
            raise BadReply(self._provider.label, "it ended early")
        return reply.turn({call["id"] for message in history for call in message.get("tool_calls") or ()})

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return a message for each answer, under the id of its call."""
        return [
            {"role": "tool", "tool_call_id": call.id, "content": f"{'error: ' if answer.is_error else ''}{answer.text}"}
            for call, answer in answers
        ]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


class _CompletionReply:
    """The pieces of one reply, as far as they have come."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._text, self.stop, self._usage = "", "", Usage()
        self._calls: dict[int, dict[str, str]] = {}

    def take(self, chunk: Any) -> None:
        if used := getattr(chunk, "usage", None):
            self._usage = Usage(used.prompt_tokens or 0, used.completion_tokens or 0)
        for choice in chunk.choices[:1]:
            self.stop = choice.finish_reason or self.stop
            if words := choice.delta.content:
                self._text += words
                self._say(words)
            for piece in choice.delta.tool_calls or ():
                self._continue(piece)

    def _continue(self, piece: Any) -> None:
        # Some servers number nothing, and send each call whole.
        index = piece.index if piece.index is not None else len(self._calls)
        call = self._calls.setdefault(index, {"id": "", "name": "", "written": ""})
        call["id"] = call["id"] or piece.id or ""
        call["name"] = call["name"] or piece.function.name or ""
        call["written"] += piece.function.arguments or ""

    def turn(self, used: set[str]) -> Turn:
        """Return the whole reply, every call under an id that is not *used* yet."""
        last = max(self._calls, default=-1)
        calls = [
            whole_call(call["id"], call["name"], call["written"], used, cut=self.stop == "length" and index == last)
            for index, call in sorted(self._calls.items())
        ]
        message: dict[str, Any] = {"role": "assistant", "content": self._text}
        message |= {"tool_calls": [_encode_call(call) for call in calls]} if calls else {}
        return Turn(self._text, tuple(calls), self._usage, self.stop, message if self._text or calls else None)


def _encode_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(call.arguments or {})}
    return {"id": call.id, "type": "function", "function": function}
