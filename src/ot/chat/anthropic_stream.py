"""Puts one streamed message of Anthropic's API together, and lets nothing of an unfinished one out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ot.chat.chat_client import Message, Say, ToolCall, Turn, Usage
from ot.errors import BadReply

SERVICE = "Anthropic"
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "json"),
}
"""For each kind of news: what it is called there, and which part of the block it continues."""
TWICE = "the call was not made: its id stands for another call of this conversation; make it again"
UNREADABLE = "the call was not made: its arguments are not a whole JSON object; make it again"
CUT = "the call was not made: the reply was cut at its longest (chat.max_tokens); make it again with less"


class AnthropicStream:
    """The blocks of one message, as far as they have come."""

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
            BadReply: It is none that a message can have here.
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
            raise BadReply(SERVICE, "it ended before its end")
        used = _ids(history)
        calls: list[ToolCall] = []
        content: list[dict[str, Any]] = []
        last = max(self._blocks, default=-1)
        for index, block in sorted(self._blocks.items()):
            written = block.pop("json")
            if block.get("type") == "tool_use":
                cut = self._stop == "max_tokens" and index == last
                calls.append(_call(block, written, used, cut=cut))
                block |= {"id": calls[-1].id, "name": calls[-1].name, "input": calls[-1].arguments or {}}
            # The API takes no empty text back.
            if block.get("type") != "text" or str(block.get("text", "")).strip():
                content.append(block)
        text = "".join(str(block["text"]) for block in content if block.get("type") == "text")
        message = {"role": "assistant", "content": content} if content else None
        return Turn(text, tuple(calls), Usage(self._input, self._output), self._stop, message)


def _call(block: Mapping[str, Any], written: str, used: set[str], *, cut: bool) -> ToolCall:
    """Return the call of a block, which adds its id to those *used*."""
    wanted, name = block.get("id"), str(block.get("name") or "unnamed")[:128]
    problem = CUT if cut else ""
    id = wanted if isinstance(wanted, str) and wanted and wanted not in used else f"toolu_again_{len(used)}"
    if id != wanted:
        problem = problem or TWICE
    used.add(id)
    arguments = _arguments(block, written)
    return ToolCall(id, name, arguments, problem or ("" if arguments is not None else UNREADABLE))


def _arguments(block: Mapping[str, Any], written: str) -> dict[str, Any] | None:
    try:
        found: Any = json.loads(written) if written.strip() else block.get("input") or {}
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _ids(history: Sequence[Message]) -> set[str]:
    written = [cast("list[Any]", message["content"]) for message in history if isinstance(message["content"], list)]
    return {block["id"] for blocks in written for block in blocks if block.get("type") == "tool_use"}
