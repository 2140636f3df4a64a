"""A model on loopback that plays a script, in the wire formats of the vendors that clients speak.

A script is a list of turns, each of which is a call of ``run`` with a program (``Run``) or the last words (``Say``).
Which turn comes next is read from the conversation that the client sends, by the number of results in it, so a client
may repeat a request, or ask for a title or a summary in between, without a turn being lost.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HANDLE = re.compile(r"handle\W+([0-9A-Za-z_-]{6,})")
NO_TURN = "the scripted model has no turn for this"
WAITS_FOR_SERVERS = "WaitForMcpServers"
"""The tool by which Claude Code lets its model wait for servers that have not started yet."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """Call ``run`` with *program*, in which ``{handle}`` is the one that the result before it names."""

    program: str
    tool: str = ""
    """The tool as the client offers it; filled in when it is known."""

    @property
    def arguments(self) -> Json:
        """What the tool is called with."""
        return {"command": self.program} if self.program else {}

    @property
    def prefix(self) -> str:
        """What the id of the call begins with, by which its result is found again."""
        return "run" if self.program else "wait"


@dataclass(frozen=True)
class Say:
    """Say *text*, which ends the conversation."""

    text: str


Turn = Run | Say


@dataclass(frozen=True)
class Shown:
    """What the client showed the model of one result: its text, and the types of its images."""

    text: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A request to a model, whichever vendor's: the tools that it may call, and the results of ``run`` so far."""

    tools: list[str]
    shown: list[Shown]


@dataclass
class ScriptedModel:
    """What the model is to do, and what it saw."""

    script: Sequence[Turn]
    shown: list[Shown] = field(default_factory=list[Shown])
    tool: str = ""
    """The name under which the client offered ``run``."""
    address: str = ""

    def next_turn(self, asked: Asked) -> Turn:
        """Return what the model does now."""
        tool = next((name for name in asked.tools if re.search(r"(^|[^a-z])run$", name)), "")
        if not tool:
            return Run("", WAITS_FOR_SERVERS) if WAITS_FOR_SERVERS in asked.tools else Say(f"{NO_TURN}: {asked.tools}")
        self.tool = tool
        if len(asked.shown) > len(self.shown):
            self.shown[:] = asked.shown
        turn = self.script[len(asked.shown)] if len(asked.shown) < len(self.script) else Say(NO_TURN)
        if isinstance(turn, Say):
            return turn
        found = HANDLE.search(asked.shown[-1].text) if asked.shown else None
        return Run(turn.program.replace("{handle}", found[1] if found else "none"), tool)

    def answer(self, path: str, body: Json) -> tuple[str, bytes] | None:
        """Return the reply to one request: its type and its bytes."""
        for part, (read, write) in WIRES.items():
            if part in path:
                asked = read(body)
                return write(self.next_turn(asked), len(asked.shown), body, path)
        return None


# ---------------------------------------------------------------- Anthropic: Messages


def ask_of_messages(body: Json) -> Asked:
    """Read a request of Anthropic's Messages."""
    shown = [
        _shown_of_blocks(block.get("content", ""))
        for message in body.get("messages", [])
        if isinstance(message["content"], list)
        for block in message["content"]
        if block.get("type") == "tool_result" and block["tool_use_id"].startswith("run")
    ]
    # A tool that is deferred is not shown to the model before it has searched for it.
    tools = [tool["name"] for tool in body.get("tools") or [] if "name" in tool and not tool.get("defer_loading")]
    return Asked(tools, shown)


def _shown_of_blocks(content: str | list[Json]) -> Shown:
    if isinstance(content, str):
        return Shown(content)
    text = "\n".join(block["text"] for block in content if block["type"] == "text")
    return Shown(text, tuple(block["source"]["media_type"] for block in content if block["type"] == "image"))


def write_messages(turn: Turn, number: int, body: Json, path: str) -> tuple[str, bytes]:
    """Write a reply of Anthropic's Messages, in one piece or as a stream."""
    if "count_tokens" in path:
        return "application/json", json.dumps({"input_tokens": 10}).encode()
    usage = {"input_tokens": 10, "output_tokens": 10}
    if isinstance(turn, Run):
        block: Json = {"type": "tool_use", "id": f"{turn.prefix}_{number:04}", "name": turn.tool, "input": {}}
        part: Json = {"type": "input_json_delta", "partial_json": json.dumps(turn.arguments)}
        whole, stop = block | {"input": turn.arguments}, "tool_use"
    else:
        block, part = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
        whole, stop = block | {"text": turn.text}, "end_turn"
    message = {"id": f"msg_{number:04}", "type": "message", "role": "assistant", "model": body.get("model", "")}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    if not body.get("stream"):
        return "application/json", json.dumps(message | {"content": [whole], "stop_reason": stop}).encode()
    ended = {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 10}}
    return _events(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": part},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", **ended},
        {"type": "message_stop"},
    )


# ---------------------------------------------------------------- OpenAI: Responses


def ask_of_responses(body: Json) -> Asked:
    """Read a request of OpenAI's Responses."""
    tools: list[str] = []
    for tool in body.get("tools") or []:
        inner = tool.get("tools", []) if tool["type"] == "namespace" else []
        tools += [f"{tool['name']}.{one['name']}" for one in inner] or [tool.get("name", "")]
    outputs = [item["output"] for item in body.get("input") or [] if item.get("type") == "function_call_output"]
    return Asked(tools, [_shown_of_output(output) for output in outputs])


def _shown_of_output(output: str | list[Json]) -> Shown:
    if isinstance(output, str):
        return Shown(output)
    text = "\n".join(part["text"] for part in output if part["type"] == "input_text")
    images = [part["image_url"] for part in output if part["type"] == "input_image"]
    return Shown(text, tuple(image.partition(";")[0].removeprefix("data:") for image in images))


def write_responses(turn: Turn, number: int, body: Json, path: str) -> tuple[str, bytes]:
    """Write a reply of OpenAI's Responses, as a stream."""
    item: Json
    if isinstance(turn, Run):
        space, _, own = turn.tool.rpartition(".")
        item = {"type": "function_call", "id": f"fc_{number:04}", "call_id": f"run_{number:04}", "name": own}
        item |= {"arguments": json.dumps(turn.arguments)} | ({"namespace": space} if space else {})
    else:
        item = {"type": "message", "id": f"msg_{number:04}", "role": "assistant"}
        item |= {"content": [{"type": "output_text", "text": turn.text, "annotations": []}]}
    usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 10, "output_tokens_details": None}
    response = {
        "id": f"resp_{number:04}",
        "object": "response",
        "output": [item],
        "usage": usage | {"total_tokens": 20},
    }
    return _events(
        {"type": "response.created", "response": {"id": response["id"]}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response | {"status": "completed"}},
    )


# ---------------------------------------------------------------- OpenAI: chat completions


def ask_of_completions(body: Json) -> Asked:
    """Read a request of OpenAI's chat completions; images come in a message of the user's after the result."""
    shown: list[Shown] = []
    for message in body.get("messages", []):
        content = message.get("content") or ""
        parts: list[Json] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        text = "\n".join(part["text"] for part in parts if part["type"] == "text")
        addresses = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        images = tuple(address.partition(";")[0].removeprefix("data:") for address in addresses)
        if message["role"] == "tool":
            shown.append(Shown(text, images))
        elif images and shown:
            shown[-1] = Shown(shown[-1].text, shown[-1].images + images)
    return Asked([tool["function"]["name"] for tool in body.get("tools") or []], shown)


def write_completions(turn: Turn, number: int, body: Json, path: str) -> tuple[str, bytes]:
    """Write a reply of OpenAI's chat completions, in one piece or as a stream."""
    said: Json = {"role": "assistant", "content": turn.text if isinstance(turn, Say) else None}
    if isinstance(turn, Run):
        call = {"name": turn.tool, "arguments": json.dumps(turn.arguments)}
        said["tool_calls"] = [{"index": 0, "id": f"run_{number:04}", "type": "function", "function": call}]
    reason = "stop" if isinstance(turn, Say) else "tool_calls"
    usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
    common = {"id": f"chatcmpl-{number:04}", "created": 1, "model": body.get("model", ""), "usage": usage}
    if not body.get("stream"):
        choice = {"index": 0, "message": said, "finish_reason": reason}
        return "application/json", json.dumps(common | {"object": "chat.completion", "choices": [choice]}).encode()
    first = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": said, "finish_reason": None}]}
    last = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    kind, stream = _events(common | first, common | last)
    return kind, stream + b"data: [DONE]\n\n"


# ---------------------------------------------------------------- Google: generateContent


def ask_of_contents(body: Json) -> Asked:
    """Read a request of Google's generateContent; images come beside or inside the function's response."""
    tools = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations", [])]
    shown: list[Shown] = []
    for part in [part for content in body.get("contents", []) for part in content["parts"]]:
        if response := part.get("functionResponse"):
            inside = [one["inlineData"]["mimeType"] for one in response.get("parts", []) if "inlineData" in one]
            value = response["response"]
            text = value.get("output", value.get("error")) or json.dumps(value)
            shown.append(Shown(text, tuple(inside)))
        elif "inlineData" in part and shown:
            shown[-1] = Shown(shown[-1].text, (*shown[-1].images, part["inlineData"]["mimeType"]))
    return Asked([tool["name"] for tool in tools], shown)


def write_contents(turn: Turn, number: int, body: Json, path: str) -> tuple[str, bytes]:
    """Write a reply of Google's generateContent, in one piece or as a stream."""
    part: Json = {"text": turn.text} if isinstance(turn, Say) else {}
    if isinstance(turn, Run):
        part = {"functionCall": {"name": turn.tool, "args": turn.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
    reply = {"candidates": [candidate], "usageMetadata": usage}
    if "streamGenerateContent" in path:
        return _events(reply)
    return "application/json", json.dumps({"totalTokens": 10} if "countTokens" in path else reply).encode()


def _events(*events: Json) -> tuple[str, bytes]:
    lines = [
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ]
    return "text/event-stream", "".join(lines).encode()


Write = Callable[[Turn, int, Json, str], tuple[str, bytes]]
WIRES: dict[str, tuple[Callable[[Json], Asked], Write]] = {
    "/v1/messages": (ask_of_messages, write_messages),
    "/responses": (ask_of_responses, write_responses),
    "/chat/completions": (ask_of_completions, write_completions),
    ":generateContent": (ask_of_contents, write_contents),
    ":streamGenerateContent": (ask_of_contents, write_contents),
    ":countTokens": (ask_of_contents, write_contents),
}
"""What a path contains, how its requests are read, and how its replies are written."""


# ---------------------------------------------------------------- the server


@contextmanager
def scripted_model(script: Iterable[Turn]) -> Generator[ScriptedModel]:
    """Yield a model that plays *script*, at its address on loopback."""
    model = ScriptedModel(list(script))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            found = model.answer(self.path, json.loads(body or b"{}"))
            self._reply(*(200, *found) if found else (404, "application/json", b"{}"))

        def do_GET(self) -> None:
            self._reply(404, "application/json", b"{}")

        do_HEAD = do_GET

        def _reply(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        model.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
