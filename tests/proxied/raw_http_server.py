"""An MCP server of the older protocol on a bare socket: it can cut, drip and spoil what it answers, byte by byte."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

JSON, EVENTS = "application/json", "text/event-stream"
Framing = Literal["length", "chunked", "close"]


@dataclass(frozen=True)
class Reply:
    """How a request is answered; ``body`` None stands for the right answer."""

    body: str | None = None
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    framing: Framing = "length"
    effect: bool = True
    cut: int | None = None
    """How many bytes are written, headers included, before the connection is closed."""
    drip: int = 0
    """How many bytes are written at a time."""
    whole: int = 0
    """To how many bytes the response is filled up."""
    endless: bytes = b""
    """What is written again and again in place of an end."""

    def wire(self, right: str) -> bytes:
        """Return the bytes of the response."""
        body = (right if self.body is None else self.body).encode()
        headers = {**({"Content-Type": self.kind} if self.kind else {}), **self.headers}
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {value}" for name, value in headers.items())]
        if self.framing == "chunked":
            lines.append("Transfer-Encoding: chunked")
            half = len(body) // 2
            parts = [part for part in (body[:half], body[half:]) if part]
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        else:
            lines.append(f"Content-Length: {len(body)}" if self.framing == "length" else "Connection: close")
        head = "\r\n".join(lines).encode()
        fill = self.whole - len(head) - len(body) - len(b"\r\nX-Fill: \r\n\r\n")
        return head + (b"\r\nX-Fill: " + b"x" * fill if fill > 0 else b"") + b"\r\n\r\n" + body


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    message: Any


def as_event(message: str, id: str = "", more: str = "") -> str:
    """Return *message* as one event of a stream."""
    return f"{more}{f'id: {id}' + chr(10) if id else ''}data: {message}\n\n"


def refusal(code: int, message: str, id: Any = None) -> str:
    """Return an error of the protocol."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


class RawHttpServer:
    """Has one tool, ``buy``, whose effects it counts; what is in ``replies`` answers the next calls."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.seen: list[Seen] = []
        self.connections = 0
        self.replies: list[Reply] = []
        self.rest: Callable[[Seen], Reply] | None = None
        """Answers whoever asks for the rest of a stream."""
        self.stream = Reply("", 405)
        """Answers whoever asks for a stream."""
        self.instead: dict[str, list[Reply]] = {}
        """Replies to methods other than tools/call."""
        self.forgotten: Reply | None = None
        """Answers calls of sessions that are not the newest."""
        self.sessions = 0
        self._serving: set[asyncio.Task[Any]] = set()
        self.done = asyncio.Event()
        """Somebody gave up while an endless reply was written."""

    def calls(self) -> list[Seen]:
        """Return the calls of tools that came, carried out or not."""
        return [seen for seen in self.seen if seen.message and seen.message.get("method") == "tools/call"]

    # ---------------------------------------------------------------- the wire

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answered(reader, writer):
                    pass
        finally:
            writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request, and return whether the connection stays open."""
        seen = await self._read(reader)
        self.seen.append(seen)
        reply, right = self._reply(seen)
        await self._write(writer, reply, reply.wire(right))
        return reply.cut is None and reply.framing != "close"

    async def end(self) -> None:
        """Break all connections off."""
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader) -> Seen:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        method, path, _ = first.split(" ")
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Seen(method, path, headers, json.loads(body) if body else None)

    async def _write(self, writer: asyncio.StreamWriter, reply: Reply, data: bytes) -> None:
        data = data[: reply.cut]
        step = reply.drip or len(data) or 1
        for start in range(0, len(data), step):
            writer.write(data[start : start + step])
            await writer.drain()
            await asyncio.sleep(0)
        try:
            while reply.endless:
                writer.write(reply.endless)
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            self.done.set()
            raise

    # ---------------------------------------------------------------- what is answered

    def _reply(self, seen: Seen) -> tuple[Reply, str]:
        method = (seen.message or {}).get("method", "")
        if seen.method == "GET":
            return (self.rest(seen) if self.rest and "last-event-id" in seen.headers else self.stream), ""
        right = json.dumps({"jsonrpc": "2.0", "id": (seen.message or {}).get("id"), "result": self._result(method)})
        if waiting := self.instead.get(method):
            return waiting.pop(0), right
        match method:
            case "tools/call":
                return self._call(seen)
            case "server/discover":
                return Reply("", 400, kind=""), ""
            case "initialize":
                self.sessions += 1
                return Reply(headers={"Mcp-Session-Id": f"s{self.sessions}"}), right
            case "tools/list":
                return Reply(), right
            case _:
                return Reply("", 202 if seen.method == "POST" else 200, kind=""), ""

    def _call(self, seen: Seen) -> tuple[Reply, str]:
        if self.forgotten and seen.headers.get("mcp-session-id") != f"s{self.sessions}":
            return self.forgotten, ""
        reply = self.replies.pop(0) if self.replies else Reply()
        what = seen.message["params"]["arguments"]["what"]
        if reply.effect:
            self.effects.append(what)
        result = {"content": [{"type": "text", "text": f"bought {what}"}]}
        right = json.dumps({"jsonrpc": "2.0", "id": seen.message["id"], "result": result})
        return reply, as_event(right) if reply.kind == EVENTS else right

    def _result(self, method: str) -> dict[str, Any]:
        if method == "tools/list":
            return {"tools": [{"name": "buy", "inputSchema": {"type": "object"}}]}
        info = {"name": "raw", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}


@asynccontextmanager
async def raw_server(port: int = 0, **options: Any) -> AsyncGenerator[tuple[str, RawHttpServer]]:
    """Yield the address of a raw server on loopback, and the server."""
    raw = RawHttpServer()
    server = await asyncio.start_server(raw.serve, "127.0.0.1", port, **options)
    scheme = "https" if options.get("ssl") else "http"
    try:
        yield f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp", raw
    finally:
        server.close()
        await raw.end()
