"""OllamaClient: the models of an Ollama, streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ot.chat.chat_client import Message, Say, ToolCall, Turn, Usage
from ot.chat.chat_tools import ToolAnswer
from ot.config.model_providers import MODEL_PROVIDERS
from ot.config.models import Chat
from ot.errors import BadReply, ChatError, ChatRefused, ChatUnavailable, RateLimited
from ot.registry.tool_definitions import ToolDefinition

SERVICE = "Ollama"
CONNECT_SECONDS = 2.0


class OllamaClient:
    """Asks a model of an Ollama; each request is made once.

    Its own library drops what it does not know of a tool's schema, so that this one speaks HTTP.
    """

    def __init__(self, chat: Chat, key: str = "", usual_url: str = "") -> None:
        """Ask as *chat* says, or at *usual_url*; a reply that pauses for longer than its ``gap_seconds`` is over."""
        import httpx2  # noqa: PLC0415 - costs more than the rest of this package

        usual = MODEL_PROVIDERS["ollama"]
        self.model = chat.model or usual.model
        self._url = _whole_url(chat.ollama_url or usual_url or usual.url)
        self._system: list[Message] = [{"role": "system", "content": chat.system}] if chat.system else []
        self._options = {"num_predict": chat.max_tokens, "num_ctx": chat.context_tokens or usual.context_tokens}
        self._errors = httpx2
        self._http = httpx2.AsyncClient(
            base_url=self._url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(chat.gap_seconds, connect=CONNECT_SECONDS),
        )

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        try:
            return await self._read(history, tools, say)
        except (self._errors.ConnectError, self._errors.ConnectTimeout) as error:
            # Its own machine, mostly: what is not running will not be in a second.
            raise ChatUnavailable(
                SERVICE, f"no connection to {self._url}: is it running? ({error})", again=False
            ) from None
        except self._errors.HTTPError as error:
            raise BadReply(SERVICE, f"it was cut off: {error or type(error).__name__}") from None
        except json.JSONDecodeError as error:
            raise BadReply(SERVICE, f"a line is not JSON: {error.doc[:100]!r}") from None
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise BadReply(SERVICE, f"a line is malformed: {str(error)[:300]}") from None

    async def _read(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        asked: dict[str, Any] = {"model": self.model, "messages": [*self._system, *history], "stream": True}
        asked |= {"tools": [tool.for_completions() for tool in tools], "options": self._options}
        text, called, last = "", list[dict[str, Any]](), dict[str, Any]()
        async with self._http.stream("POST", "/api/chat", json=asked) as reply:
            if reply.status_code != 200:
                raise self._of_status(reply.status_code, (await reply.aread()).decode(errors="replace"))
            async for line in reply.aiter_lines():
                last = json.loads(line)
                if "error" in last:
                    raise BadReply(SERVICE, str(last["error"])[:500])
                if words := last["message"].get("content"):
                    text += words
                    say(words)
                called += [_called(call["function"]) for call in last["message"].get("tool_calls") or ()]
        if not last.get("done"):
            raise BadReply(SERVICE, "it ended early")
        first = 1 + sum(len(message.get("tool_calls") or ()) for message in history)
        functions = [call["function"] for call in called]
        calls = [ToolCall(f"call_{n}", one["name"], one["arguments"]) for n, one in enumerate(functions, first)]
        message = {"role": "assistant", "content": text} | ({"tool_calls": called} if called else {})
        usage = Usage(last.get("prompt_eval_count") or 0, last.get("eval_count") or 0)
        return Turn(text, tuple(calls), usage, last.get("done_reason") or "", message if text or called else None)

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return a message for each answer, in the order of the calls: Ollama knows no ids."""
        return [
            {"role": "tool", "tool_name": call.name, "content": f"{'error: ' if answer.is_error else ''}{answer.text}"}
            for call, answer in answers
        ]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _of_status(self, status: int, body: str) -> ChatError:
        try:
            message = str(json.loads(body)["error"])[:500]
        except (ValueError, TypeError, KeyError):
            message = body[:500]
        if status == 429:
            return RateLimited(SERVICE, None)
        if status >= 500:
            return ChatUnavailable(SERVICE, f"{status} {message}")
        return ChatRefused(SERVICE, status, message, f"try: ollama pull {self.model}" if status == 404 else "")


def _called(function: Mapping[str, Any]) -> dict[str, Any]:
    return {"function": {"name": str(function["name"]), "arguments": dict(function["arguments"])}}


def _whole_url(host: str) -> str:
    """Return the address that OLLAMA_HOST means, which may be a host or a port alone."""
    if "://" in host:
        return host
    name, _, port = urlsplit(f"//{host}").netloc.rpartition(":") if ":" in host else (host, "", "")
    return f"http://{name or '127.0.0.1'}:{port or 11434}"
