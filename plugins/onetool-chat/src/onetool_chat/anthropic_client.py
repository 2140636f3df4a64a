"""AnthropicClient: Anthropic's Messages API, streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from onetool_chat.chat_client import Message, Say, ToolCall, Turn, Usage, whole_call
from onetool_chat.chat_tools import ToolAnswer
from onetool_chat.errors import BadReply
from onetool_chat.model_providers import MODEL_PROVIDERS
from onetool_chat.service_errors import stream_reply
from onetool_chat.settings import Chat
from ot.errors import MissingExtra
from ot.registry.tool_definitions import ToolDefinition

ANTHROPIC = MODEL_PROVIDERS["anthropic"]
CONNECT_SECONDS = 5.0
PIECES = ("text", "thinking", "signature", "partial_json")
"""Parts of a block that come in pieces."""
READ = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""What a model has read is counted in three places."""


class AnthropicClient:
    """Asks a model of Anthropic's; each request is made once."""

    def __init__(self, chat: Chat, key: str) -> None:
        """Ask as *chat* says, with *key*; a reply that pauses longer than its ``gap_seconds`` has ended."""
        try:
            import anthropic  # noqa: PLC0415 - costs more than everything else together, and is an extra
        except ImportError:
            raise MissingExtra("chat with Anthropic's models", "chat") from None
        self.model = chat.model or ANTHROPIC.model
        self._asked: dict[str, Any] = {"model": self.model, "max_tokens": chat.max_tokens}
        self._asked |= {"system": chat.system} if chat.system else {}
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=chat.anthropic_url or None,
            max_retries=0,  # Retries is the one layer that tries again
            timeout=anthropic.Timeout(chat.gap_seconds, connect=CONNECT_SECONDS),
            # A service must not send on elsewhere what it was asked, and the key with it.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    async def turn(self, history: Sequence[Message], tools: Sequence[ToolDefinition], say: Say) -> Turn:
        """Return the model's whole reply."""
        asked: dict[str, Any] = {**self._asked, "messages": list(history), "stream": True}
        asked |= {"tools": [tool.for_anthropic() for tool in tools]} if tools else {}
        # What it returns depends on `stream`, which no type sees in a mapping.
        create: Any = self._client.messages.create
        message: dict[str, Any] = {}
        url, hint = str(self._client.base_url), "is the model's name right?"
        async with stream_reply(ANTHROPIC, url, create(**asked), hint) as events:
            async for event in events:
                _take(event.to_dict(exclude_unset=True, warnings=False), message, say)
            if not message.get("ended"):
                raise BadReply(ANTHROPIC.label, "it ended early")
            return _turn(message, _ids(history))

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


def _take(event: Mapping[str, Any], message: dict[str, Any], say: Say) -> None:
    """Put an event into the *message* that it is part of; kinds that are not known yet may come at any time."""
    match event["type"]:
        case "message_start":
            message |= {"usage": {}, **event["message"], "content": []}
        case "content_block_start":
            message["content"].append({**event["content_block"]})
        case "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            block |= {name: (block.get(name) or "") + delta[name] for name in PIECES if name in delta}
            if "text" in delta:
                say(delta["text"])
        case "message_delta":
            message |= event["delta"]
            counts: Mapping[str, Any] = event.get("usage") or {}
            message["usage"] |= {name: count for name, count in counts.items() if count}
        case "message_stop":
            message["ended"] = True
        case _:
            pass


def _turn(message: Mapping[str, Any], used: set[str]) -> Turn:
    """Return the whole reply, every call under an id that is not *used* yet."""
    blocks, stop, usage = message["content"], message.get("stop_reason") or "", message["usage"]
    calls: list[ToolCall] = []
    for block in blocks:
        written = block.pop("partial_json", "").strip()
        if block["type"] == "tool_use":
            cut = stop == "max_tokens" and block is blocks[-1]
            calls.append(whole_call(block["id"], block["name"], written or json.dumps(block["input"]), used, cut=cut))
            block |= {"id": calls[-1].id, "name": calls[-1].name, "input": calls[-1].arguments or {}}
    # The API takes no empty text back.
    content = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    text = "".join(block["text"] for block in content if block["type"] == "text")
    spent = Usage(sum(usage.get(name) or 0 for name in READ), usage.get("output_tokens") or 0)
    return Turn(text, tuple(calls), spent, stop, {"role": "assistant", "content": content} if content else None)


def _ids(history: Sequence[Message]) -> set[str]:
    written = [cast("list[Any]", message["content"]) for message in history if isinstance(message["content"], list)]
    return {block["id"] for blocks in written for block in blocks if block.get("type") == "tool_use"}
