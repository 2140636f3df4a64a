"""OllamaClient: the models of an Ollama, streamed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ot.chat.chat_client import Message, Say, ToolCall, Turn, Usage
from ot.chat.chat_tools import ToolAnswer
from ot.config.models import Chat
from ot.errors import BadReply, ChatError, ChatRefused, ChatUnavailable, MissingExtra, RateLimited
from ot.registry.tool_definitions import ToolDefinition

SERVICE = "Ollama"
USUAL_MODEL = "qwen3"
USUAL_URL = "http://127.0.0.1:11434"
CONNECT_SECONDS = 2.0


class OllamaClient:
    """Asks a model of an Ollama; each request is made once."""

    def __init__(self, chat: Chat, key: str = "", usual_url: str = "") -> None:
        """Ask as *chat* says, or at *usual_url*; a reply that pauses for longer than its ``gap_seconds`` is over.

        Raises:
            MissingExtra: The library is not installed.
        """
        try:
            import httpx  # noqa: PLC0415 - only here: the rest of the house uses its successor
            import ollama  # noqa: PLC0415 - an extra
        except ImportError:
            raise MissingExtra("chat with Ollama's models", "chat") from None
        self.model = chat.model or USUAL_MODEL
        self._url = chat.ollama_url or usual_url or USUAL_URL
        self._response_error, self._http_error = ollama.ResponseError, httpx.HTTPError
        self._connect_errors = (httpx.ConnectError, httpx.ConnectTimeout, ConnectionError)
        self._system: list[Message] = [{"role": "system", "content": chat.system}] if chat.system else []
        self._options = {"num_predict": chat.max_tokens}
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        timeout = httpx.Timeout(chat.gap_seconds, connect=CONNECT_SECONDS)
        self._client = ollama.AsyncClient(host=self._url, timeout=timeout, headers=headers)

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        try:
            return await self._read(history, tools, say)
        except self._response_error as error:
            raise self._of_status(error) from None
        except self._connect_errors as error:
            # Its own machine, mostly: what is not running will not be in a second.
            raise ChatUnavailable(
                SERVICE, f"no connection to {self._url}: is it running? ({error})", again=False
            ) from None
        except self._http_error as error:
            raise BadReply(SERVICE, f"it was cut off: {error or type(error).__name__}") from None
        except json.JSONDecodeError as error:
            raise BadReply(SERVICE, f"a line is not JSON: {error.doc[:100]!r}") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise BadReply(SERVICE, f"a line is malformed: {str(error)[:300]}") from None

    async def _read(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        client: Any = self._client  # typed in part
        lines = await client.chat(
            model=self.model,
            messages=[*self._system, *history],
            tools=[tool.for_ollama() for tool in tools],
            stream=True,
            options=self._options,
        )
        text, functions, last = "", list[Any](), None
        async for last in lines:
            if last.message.content:
                text += last.message.content
                say(last.message.content)
            functions += [call.function for call in last.message.tool_calls or ()]
        if last is None or not last.done:
            raise BadReply(SERVICE, "it ended early")
        called = [{"function": {"name": one.name, "arguments": dict(one.arguments)}} for one in functions]
        first = 1 + sum(len(message.get("tool_calls") or ()) for message in history)
        calls = [ToolCall(f"call_{n}", one.name, dict(one.arguments)) for n, one in enumerate(functions, first)]
        message = {"role": "assistant", "content": text} | ({"tool_calls": called} if called else {})
        usage = Usage(last.prompt_eval_count or 0, last.eval_count or 0)
        return Turn(text, tuple(calls), usage, last.done_reason or "", message if text or called else None)

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return a message for each answer, in the order of the calls: Ollama knows no ids."""
        return [
            {"role": "tool", "tool_name": call.name, "content": f"{'error: ' if answer.is_error else ''}{answer.text}"}
            for call, answer in answers
        ]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _of_status(self, error: Any) -> ChatError:
        status, message = int(error.status_code), str(error.error)[:500]
        if status == 429:
            return RateLimited(SERVICE, None)
        if status >= 500:
            return ChatUnavailable(SERVICE, f"{status} {message}")
        if status < 0:  # told in the middle of a stream
            return BadReply(SERVICE, message)
        return ChatRefused(SERVICE, status, message, f"try: ollama pull {self.model}" if status == 404 else "")
