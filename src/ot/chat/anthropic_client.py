"""AnthropicClient: Anthropic's Messages API, streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ot.chat.chat_client import Message, Say, ToolCall, Turn, Usage
from ot.chat.chat_tools import ToolAnswer
from ot.chat.retries import retry_after
from ot.chat.streamed_calls import whole_call
from ot.config.model_providers import MODEL_PROVIDERS
from ot.config.models import Chat
from ot.errors import BadReply, ChatError, ChatRefused, ChatUnavailable, MissingExtra, RateLimited
from ot.registry.tool_definitions import ToolDefinition

SERVICE = "Anthropic"
CONNECT_SECONDS = 5.0
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "json"),
}
"""For each kind of news: what it is called there, and which part of the block it continues."""


class AnthropicClient:
    """Asks a model of Anthropic's; each request is made once."""

    def __init__(self, chat: Chat, key: str) -> None:
        """Ask as *chat* says, with *key*; a reply that pauses longer than its ``gap_seconds`` has ended.

        Raises:
            MissingExtra: The library is not installed.
        """
        try:
            import anthropic  # noqa: PLC0415 - costs more than everything else together, and is an extra
        except ImportError:
            raise MissingExtra("chat with Anthropic's models", "chat") from None
        self.model = chat.model or MODEL_PROVIDERS["anthropic"].model
        self._errors = anthropic
        self._asked: dict[str, Any] = {"model": self.model, "max_tokens": chat.max_tokens}
        self._asked |= {"system": chat.system} if chat.system else {}
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=chat.anthropic_url or None,
            max_retries=0,  # Retries is the one layer that tries again
            timeout=anthropic.Timeout(chat.gap_seconds, connect=CONNECT_SECONDS),
        )

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        stream = AnthropicStream(say)
        try:
            return await self._read(stream, history, tools)
        except ChatError:
            raise
        except self._errors.APIStatusError as error:
            raise _of_status(error) from None
        except self._errors.APIConnectionError as error:
            raise ChatUnavailable(SERVICE, f"no connection: {error.__cause__ or error}") from None
        except json.JSONDecodeError as error:
            raise BadReply(SERVICE, f"an event is not JSON: {error.doc[:100]!r}") from None
        except self._errors.AnthropicError as error:
            raise BadReply(SERVICE, str(error)[:300]) from None

    async def _read(self, stream: AnthropicStream, history: Sequence[Message], tools: Sequence[ToolDefinition]) -> Turn:
        import httpx2  # noqa: PLC0415 - comes with the library that was imported at the start

        asked: dict[str, Any] = {**self._asked, "messages": list(history), "stream": True}
        asked |= {"tools": [tool.for_anthropic() for tool in tools]} if tools else {}
        # What it returns depends on `stream`, which no type sees in a mapping.
        create: Any = self._client.messages.create
        events = await create(**asked)
        try:
            async for event in events:
                if not hasattr(event, "to_dict"):
                    raise BadReply(SERVICE, f"an event is not an object but {type(event).__name__}")
                stream.take(event.to_dict(exclude_unset=True, warnings=False))
        except (httpx2.HTTPError, httpx2.StreamError, EOFError) as error:
            raise BadReply(SERVICE, f"it was cut off: {error or type(error).__name__}") from None
        finally:
            await events.close()
        return stream.turn(history)

    def results(self, answers: Sequence[tuple[ToolCall, ToolAnswer]]) -> list[Message]:
        """Return one message with every answer under the id of its call."""
        content = [
            {"type": "tool_result", "tool_use_id": call.id, "content": answer.text, "is_error": answer.is_error}
            for call, answer in answers
        ]
        return [{"role": "user", "content": content}]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()


def _of_status(error: Any) -> ChatError:
    """Return the error of ours that a status means; an error in the middle of a stream has status 200."""
    status, kind = int(error.status_code), _kind(error.body)
    if status == 429 or kind == "rate_limit_error":
        return RateLimited(SERVICE, retry_after(error.response.headers))
    if status >= 500 or kind in ("overloaded_error", "api_error"):
        # In the middle of a stream, part of the answer has been shown already.
        return ChatUnavailable(SERVICE, f"{status} {kind}".strip(), again=status != 200)
    hint = "is ANTHROPIC_API_KEY right?" if status in (401, 403) else "is the model's name right?" * (status == 404)
    return ChatRefused(SERVICE, status, str(error.message)[:500], hint)


def _kind(body: object) -> str:
    match body:
        case {"error": {"type": str(kind)}}:
            return kind
        case _:
            return ""


# ---------------------------------------------------------------- one streamed message


class AnthropicStream:
    """The blocks of one message, as far as they have come; nothing of an unfinished one is let out."""

    def __init__(self, say: Say) -> None:
        """Hand text on to *say* as it comes."""
        self._say = say
        self._blocks: dict[int, dict[str, Any]] = {}
        self._open: set[int] = set()
        self._stop = ""
        self._input = self._output = 0
        self._ended = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Take the next event.

        Raises:
            BadReply: It is malformed.
        """
        try:
            self._take(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise BadReply(SERVICE, f"an event is malformed ({type(error).__name__}: {error})") from None

    def _take(self, event: Mapping[str, Any]) -> None:
        match event["type"]:
            case "message_start":
                self._count(event["message"].get("usage") or {})
            case "content_block_start":
                self._blocks[event["index"]] = {**event["content_block"], "json": ""}
                self._open.add(event["index"])
            case "content_block_delta":
                self._continue(event["index"], event["delta"])
            case "content_block_stop":
                self._open.remove(event["index"])
            case "message_delta":
                self._stop = event["delta"].get("stop_reason") or self._stop
                self._count(event.get("usage") or {})
            case "message_stop":
                self._ended = True
            case _:
                pass  # new kinds of events may come at any time

    def _continue(self, index: int, delta: Mapping[str, Any]) -> None:
        if index not in self._open:
            raise ValueError(f"block {index} is not open")
        if delta["type"] not in DELTAS:
            return
        given, kept = DELTAS[delta["type"]]
        block = self._blocks[index]
        block[kept] = (block.get(kept) or "") + delta[given]
        if kept == "text":
            self._say(delta[given])

    def _count(self, usage: Mapping[str, Any]) -> None:
        cached = (usage.get("cache_creation_input_tokens") or 0) + (usage.get("cache_read_input_tokens") or 0)
        self._input = max(self._input, (usage.get("input_tokens") or 0) + cached)
        self._output = usage.get("output_tokens") or self._output

    def turn(self, history: Sequence[Message]) -> Turn:
        """Return the whole message, every call under an id that *history* does not know.

        Raises:
            BadReply: It has not come to its end.
        """
        if not self._ended or self._open:
            raise BadReply(SERVICE, "it ended early")
        used = _ids(history)
        calls: list[ToolCall] = []
        content: list[dict[str, Any]] = []
        last = max(self._blocks, default=-1)
        for index, block in sorted(self._blocks.items()):
            written = block.pop("json")
            if block.get("type") == "tool_use":
                cut = self._stop == "max_tokens" and index == last
                written = written if written.strip() else json.dumps(block.get("input") or {})
                calls.append(whole_call(block.get("id"), block.get("name"), written, used, cut=cut))
                block |= {"id": calls[-1].id, "name": calls[-1].name, "input": calls[-1].arguments or {}}
            # The API takes no empty text back.
            if block.get("type") != "text" or str(block.get("text", "")).strip():
                content.append(block)
        text = "".join(str(block["text"]) for block in content if block.get("type") == "text")
        message = {"role": "assistant", "content": content} if content else None
        return Turn(text, tuple(calls), Usage(self._input, self._output), self._stop, message)


def _ids(history: Sequence[Message]) -> set[str]:
    written = [cast("list[Any]", message["content"]) for message in history if isinstance(message["content"], list)]
    return {block["id"] for blocks in written for block in blocks if block.get("type") == "tool_use"}
