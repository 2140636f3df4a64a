"""OllamaClient: the models of an Ollama, streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

from onetool_chat.chat_client import Message, Say, ToolCall, Turn, Usage
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.errors import BadReply
from onetool_chat.model_providers import MODEL_PROVIDERS
from onetool_chat.service_errors import stream_reply
from onetool_chat.settings import Chat
from ot.registry.tool_definitions import ToolDefinition

OLLAMA = MODEL_PROVIDERS["ollama"]
CONNECT_SECONDS = 2.0


class OllamaClient:
    """Asks a model of an Ollama, over HTTP: its own library drops what it does not know of a tool's schema."""

    def __init__(self, chat: Chat, key: str = "", usual_url: str = "") -> None:
        """Ask as *chat* says, or at *usual_url*; a reply that pauses for longer than its ``gap_seconds`` is over."""
        import httpx2  # noqa: PLC0415 - costs more than the rest of this package

        self.model = chat.model or OLLAMA.model
        self._url = _whole_url(chat.ollama_url or usual_url or OLLAMA.url)
        self._system: list[Message] = [{"role": "system", "content": chat.system}] if chat.system else []
        self._options = {"num_predict": chat.max_tokens, "num_ctx": chat.context_tokens or OLLAMA.context_tokens}
        self._http = httpx2.AsyncClient(
            base_url=self._url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(chat.gap_seconds, connect=CONNECT_SECONDS),
        )

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        asked: dict[str, Any] = {"model": self.model, "messages": [*self._system, *history], "stream": True}
        asked |= {"tools": [tool.for_completions() for tool in tools], "options": self._options}
        text, called, last = "", list[dict[str, Any]](), dict[str, Any]()
        async with stream_reply(OLLAMA, self._url, self._open_stream(asked), f"try: ollama pull {self.model}") as reply:
            async for line in reply.aiter_lines():
                last = json.loads(line)
                if "error" in last:
                    raise BadReply(OLLAMA.label, str(last["error"])[:500])
                if words := last["message"].get("content"):
                    text += words
                    say(words)
                called += [_encode_call(call["function"]) for call in last["message"].get("tool_calls") or ()]
        if not last.get("done"):
            raise BadReply(OLLAMA.label, "it ended early")
        first = 1 + sum(len(message.get("tool_calls") or ()) for message in history)
        calls = [ToolCall(f"call_{n}", **call["function"]) for n, call in enumerate(called, first)]
        message = {"role": "assistant", "content": text} | ({"tool_calls": called} if called else {})
        usage = Usage(last.get("prompt_eval_count") or 0, last.get("eval_count") or 0)
        return Turn(text, tuple(calls), usage, last.get("done_reason") or "", message if text or called else None)

    async def _open_stream(self, asked: Mapping[str, Any]) -> aclosing[Any]:
        reply = await self._http.send(self._http.build_request("POST", "/api/chat", json=asked), stream=True)
        if reply.is_error:
            await reply.aread()
            reply.raise_for_status()
        return aclosing(reply)

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return a message for each answer, in the order of the calls: Ollama knows no ids."""
        return [
            {"role": "tool", "tool_name": call.name, "content": f"{'error: ' if answer.is_error else ''}{answer.text}"}
            for call, answer in answers
        ]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def _encode_call(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"function": {"name": str(function["name"]), "arguments": dict(function["arguments"])}}


def _whole_url(host: str) -> str:
    """Return the address that OLLAMA_HOST means, which may be a host or a port alone."""
    if "://" in host:
        return host
    name, _, port = urlsplit(f"//{host}").netloc.rpartition(":") if ":" in host else (host, "", "")
    return f"http://{name or '127.0.0.1'}:{port or 11434}"
