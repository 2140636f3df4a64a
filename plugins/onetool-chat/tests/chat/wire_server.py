"""Loopback servers that speak the wire formats of model providers, from a script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

from pace import PATIENCE

Write = Callable[[str], Awaitable[None]]
Pour = Callable[[Write], Awaitable[None]]


@dataclass
class Scripted:
    """One response: a status, headers, and pieces of its body; *cut* closes without the end of the body."""

    pieces: Sequence[str] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    kind: str = "text/event-stream"
    cut: bool = False
    plain_end: bool = False
    """Whether the end of the body is the end of the connection, so that a cut cannot be told from the end."""
    pour: Pour | None = None


class WireServer:
    """Answers each request with the next response of a script, the last one again and again."""

    def __init__(self, script: Sequence[Scripted]) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.times: list[float] = []
        self.url = ""
        self.closed = asyncio.Event()
        """Set when a client has gone away before the end."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    int(line.split(":")[1]) for line in head.lower().split("\r\n") if line.startswith("content-length")
                )
                self.requests.append(json.loads(await reader.readexactly(length)))
                self.headers.append(head)
                self.times.append(asyncio.get_running_loop().time())
                scripted = self.script.pop(0) if len(self.script) > 1 else self.script[0]
                await self._answer(scripted, writer)
                if scripted.cut or scripted.plain_end:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        finally:
            writer.close()

    async def _answer(self, scripted: Scripted, writer: asyncio.StreamWriter) -> None:
        framing = "connection: close" if scripted.plain_end else "transfer-encoding: chunked"
        told = "".join(f"{name}: {value}\r\n" for name, value in scripted.headers.items())
        writer.write(
            f"HTTP/1.1 {scripted.status} Scripted\r\ncontent-type: {scripted.kind}\r\n{framing}\r\n{told}\r\n".encode()
        )

        async def write(piece: str) -> None:
            data = piece.encode()
            writer.write(data if scripted.plain_end else f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()

        for piece in scripted.pieces:
            await write(piece)
        if scripted.pour:
            await scripted.pour(write)
        if not (scripted.cut or scripted.plain_end):
            writer.write(b"0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def serving(*script: Scripted) -> AsyncGenerator[WireServer]:
    """Yield a server that follows *script*."""
    wire = WireServer(script)
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(wire.handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire.url = f"http://127.0.0.1:{port}"
    try:
        yield wire
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def serving_aside(*script: Scripted) -> Generator[WireServer]:
    """Yield the same on a thread of its own, for a command that has its own event loop."""
    started: Queue[tuple[WireServer, asyncio.AbstractEventLoop, asyncio.Event]] = Queue()

    async def serve() -> None:
        async with serving(*script) as wire:
            ended = asyncio.Event()
            started.put((wire, asyncio.get_running_loop(), ended))
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    wire, loop, ended = started.get(timeout=20)
    try:
        yield wire
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)


# ---------------------------------------------------------------- Anthropic


def sse(event: Mapping[str, Any]) -> str:
    """Return an event as the API writes it."""
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"


def message_start() -> str:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return sse({"type": "message_start", "message": message})


def text_block(index: int, *words: str) -> list[str]:
    delta = [
        sse({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": word}})
        for word in words
    ]
    return [
        sse({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}),
        *delta,
        sse({"type": "content_block_stop", "index": index}),
    ]


def tool_block(index: int, id: str, name: str, arguments: object) -> list[str]:
    """Return a call, its arguments in two pieces as the API cuts them."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    half = len(written) // 2
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in (written[:half], written[half:])]
    return [
        sse({"type": "content_block_start", "index": index, "content_block": block}),
        *(sse({"type": "content_block_delta", "index": index, "delta": delta}) for delta in deltas),
        sse({"type": "content_block_stop", "index": index}),
    ]


def message_end(stop: str = "end_turn") -> list[str]:
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [
        sse({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}),
        sse({"type": "message_stop"}),
    ]


def anthropic_text(*words: str) -> Scripted:
    """Return an answer in words."""
    ping = 'event: ping\ndata: {"type": "ping"}\n\n'
    return Scripted([message_start(), ping, *text_block(0, *words), *message_end()])


def anthropic_calls(*calls: tuple[str, str, object], stop: str = "tool_use") -> Scripted:
    """Return an answer that asks for tools: each an id, a name and arguments."""
    blocks = [piece for index, call in enumerate(calls, 1) for piece in tool_block(index, *call)]
    return Scripted([message_start(), *text_block(0, "Let me see."), *blocks, *message_end(stop)])


def anthropic_error(status: int, kind: str = "api_error", **headers: str) -> Scripted:
    """Return a refusal as the API words it."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": f"scripted {kind}"}})
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Scripted([body], status, told, "application/json")


# ---------------------------------------------------------------- Ollama


def line(content: str = "", calls: Sequence[tuple[str, object]] = (), **more: Any) -> str:
    """Return one line of a streamed reply."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [{"function": {"name": name, "arguments": given}} for name, given in calls]
    return json.dumps({"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, **more}) + "\n"


def last_line() -> str:
    return line(done=True, done_reason="stop", prompt_eval_count=10, eval_count=5)


def ollama_text(*words: str) -> Scripted:
    """Return an answer in words."""
    return Scripted([*(line(word, done=False) for word in words), last_line()], kind="application/x-ndjson")


def ollama_calls(*calls: tuple[str, object]) -> Scripted:
    """Return an answer that asks for tools."""
    return Scripted([line("", calls, done=False), last_line()], kind="application/x-ndjson")


# ---------------------------------------------------------------- OpenAI


def chunk(delta: Mapping[str, Any] | None = None, stop: str | None = None, **more: Any) -> str:
    """Return one event of streamed chat completions."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": stop}]
    event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}
    return f"data: {json.dumps(event)}\n\n"


def openai_end(stop: str) -> list[str]:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return [chunk({}, stop), chunk(usage=usage), "data: [DONE]\n\n"]


def openai_text(*words: str) -> Scripted:
    """Return an answer in words."""
    first = chunk({"role": "assistant", "content": ""})
    return Scripted([first, *(chunk({"content": word}) for word in words), *openai_end("stop")])


def openai_calls(*calls: tuple[str, str, object], stop: str = "tool_calls") -> Scripted:
    """Return an answer that asks for tools, the arguments of each in two pieces."""
    pieces = [chunk({"role": "assistant", "content": None})]
    for index, (id, name, given) in enumerate(calls):
        written = given if isinstance(given, str) else json.dumps(given)
        half = len(written) // 2
        begun = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": written[:half]}}
        rest = {"index": index, "function": {"arguments": written[half:]}}
        pieces += [chunk({"tool_calls": [begun]}), chunk({"tool_calls": [rest]})]
    return Scripted([*pieces, *openai_end(stop)])


def openai_error(status: int, code: str = "invalid", **headers: str) -> Scripted:
    """Return a refusal as the API words it."""
    body = json.dumps({"error": {"message": f"scripted {code}", "type": code, "code": code}})
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return Scripted([body], status, told, "application/json")
