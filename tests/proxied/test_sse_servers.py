"""Servers that answer with streams of events, of the older transport and of this one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp import Context, FastMCP
from fastmcp.server.event_store import EventStore

from ot.errors import ServerUnavailable, ToolFailed
from ot.processes.backoff import Backoff
from ot.proxied.pool import ServerPool
from proxied.desk import Door, Gate, door_to, http_spec, served, until
from proxied.raw_http_server import Reply, raw_server

pytestmark = pytest.mark.anyio


class Stall:
    """A real server of the older transport, whose effects are counted."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.mcp = FastMCP("stall")

        @self.mcp.tool
        async def buy(what: str, ctx: Context) -> str:
            self.effects.append(what)
            await ctx.report_progress(1, 2, "paid")
            return f"bought {what}"

        @self.mcp.tool
        async def picture(size: int) -> str:
            return "x" * size

        @self.mcp.tool
        async def hang() -> str:
            self.effects.append("hang")
            await asyncio.sleep(30)
            return "never"

        @self.mcp.tool
        async def doze(gate: str) -> str:
            self.effects.append(gate)
            await self.awake.wait()
            return "awake"

        self.awake = asyncio.Event()


@asynccontextmanager
async def stall_door(**settings: Any) -> AsyncGenerator[tuple[Door, Stall, Gate]]:
    """Yield a door to a real server."""
    stall = Stall()
    gate = Gate(stall.mcp.http_app(transport="sse", path="/mcp"))
    async with served(gate, lifespan="on") as url, door_to(http_spec(url, **settings)) as door:
        yield door, stall, gate


@pytest.mark.parametrize("transport", ["", "sse"])
async def test_a_server_of_the_older_transport_is_called_whether_the_settings_say_so_or_not(transport: Any):
    async with stall_door(transport=transport, headers={"X-Key": "abc"}) as (door, stall, gate):
        assert await door.call("buy", what="tea") == "bought tea"
        assert [told["message"] for told in door.of("progress")] == ["paid"]
        assert len(await door.call("picture", size=2 << 20)) == 2 << 20
        values = await asyncio.gather(*(door.call("buy", what=str(number)) for number in range(8)))
        assert values == [f"bought {number}" for number in range(8)]
        assert len(stall.effects) == 9
        assert all(headers["x-key"] == "abc" for headers in gate.headers)


async def test_a_server_said_to_speak_streamable_http_is_not_asked_for_a_stream_of_events():
    async with stall_door(transport="http") as (door, _, _):
        with pytest.raises(ServerUnavailable, match="HTTP 405: check that its url is the address of an MCP server"):
            await door.call("buy", what="tea")


@pytest.mark.parametrize("status", [404, 410])
async def test_a_session_that_the_server_forgot_is_begun_anew_and_the_call_made_once(status: int):
    async with stall_door() as (door, stall, gate):
        await door.call("buy", what="tea")
        gate.refusals.append((status, b""))
        assert await door.call("buy", what="milk") == "bought milk"
        assert stall.effects == ["tea", "milk"]


async def test_a_message_that_is_refused_fails_its_call_and_no_other():
    async with stall_door(transport="sse") as (door, stall, gate):
        await door.call("buy", what="tea")
        slow = asyncio.ensure_future(door.call("doze", gate="one"))
        await until(lambda: "one" in stall.effects)
        gate.refusals += [(403, b""), (429, b"")]
        with pytest.raises(ServerUnavailable, match="HTTP 403"):
            await door.call("buy", what="milk")
        with pytest.raises(ServerUnavailable, match="HTTP 429"):
            await door.call("buy", what="milk")
        stall.awake.set()
        assert await slow == "awake"
        assert stall.effects == ["tea", "one"]


async def test_a_call_that_is_given_up_leaves_the_stream_to_the_others():
    async with stall_door(transport="sse") as (door, _, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await door.call("hang")
        assert await door.call("buy", what="tea") == "bought tea"


# ---------------------------------------------------------------- streams that break off


CUTS = range(0, 100, 4)
"""Into an answer, short of the bytes that end it."""


class RawStall:
    """The older transport on a bare socket: the answer to a call is cut after so many bytes, with the stream."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.cut: int | None = None
        self.endpoint = "/messages?sessionId=1"
        self._stream: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if head.startswith(b"GET"):
                    self._stream = writer
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
                    writer.write(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
                    continue
                size = int(
                    next(line for line in head.lower().split(b"\r\n") if b"content-length" in line).split(b":")[1]
                )
                self._answer(json.loads(await reader.readexactly(size)))
                writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, message: dict[str, Any]) -> None:
        result: dict[str, Any] = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "raw", "version": "1"}
        if message.get("method") == "tools/list":
            result = {"tools": [{"name": "buy", "inputSchema": {"type": "object"}}]}
        elif message.get("method") == "tools/call":
            what = message["params"]["arguments"]["what"]
            self.effects.append(what)
            result = {"content": [{"type": "text", "text": f"bought {what}"}]}
        if "id" not in message or not self._stream:
            return
        event = f"data: {json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result})}\n\n".encode()
        is_cut = self.cut is not None and message.get("method") == "tools/call"
        self._stream.write(event[: self.cut] if is_cut else event)
        if is_cut and self.cut is not None and self.cut < len(event):
            self._stream.close()


@asynccontextmanager
async def raw_stall() -> AsyncGenerator[tuple[Door, RawStall]]:
    raw = RawStall()
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/sse"
    pool = ServerPool(backoff=lambda: Backoff(first=1e-6, longest=1e-6))
    try:
        async with door_to(http_spec(url, transport="sse"), pool=pool) as door:
            yield door, raw
    finally:
        server.close()


async def test_a_stream_cut_at_any_byte_of_an_answer_is_unknown_and_never_repeated():
    async with raw_stall() as (door, raw):
        assert await door.call("buy", what="n000") == "bought n000"
        for cut in CUTS:
            raw.cut = cut
            with pytest.raises(ServerUnavailable) as caught:
                await door.call("buy", what=f"n{cut:03}")
            assert caught.value.unknown
        raw.cut = None
        assert await door.call("buy", what="milk") == "bought milk"
        assert raw.effects == ["n000", *(f"n{cut:03}" for cut in CUTS), "milk"]


async def test_a_stream_that_wants_messages_at_another_origin_gets_none():
    async with raw_server() as (elsewhere, other), raw_stall() as (door, raw):
        raw.endpoint = elsewhere
        with pytest.raises(ServerUnavailable) as caught:
            await door.call("buy", what="tea")
        assert f"but names {elsewhere.removesuffix('/mcp')}" in str(caught.value)
        assert (other.connections, raw.effects) == (0, [])


@pytest.mark.parametrize("status", [405, 200])
async def test_an_address_without_a_stream_of_events_is_said_to_be_none(status: int):
    async with raw_server() as (url, raw), door_to(http_spec(f"{url}?key=abc", transport="sse")) as door:
        raw.stream = Reply("<html>", status, kind="text/html")
        with pytest.raises(ServerUnavailable) as caught:
            await door.call("buy", what="tea")
        told = "check that its url is the address" if status == 405 else "Expected response with content type"
        assert told in str(caught.value)
        assert "abc" not in str(caught.value)


async def test_the_error_of_a_real_tool_is_its_own():
    async with stall_door(transport="sse") as (door, _, _):
        with pytest.raises(ToolFailed):
            await door.call("buy")


class RawServer:
    """A server of the older protocol that counts its calls, and answers each as a test wants."""

    def __init__(self, answer: str, listing: dict[str, Any] | None = None) -> None:
        self.calls = 0
        self._answer = answer
        self._listing = listing or {"result": {"tools": [{"name": "buy", "inputSchema": {"type": "object"}}]}}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        message = json.loads(await _body(receive) or b"{}")
        match scope["method"], message.get("method"):
            case "POST", "initialize":
                info = {"name": "raw", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
                await _reply(send, 200, {"jsonrpc": "2.0", "id": message["id"], "result": result})
            case "POST", "tools/list":
                await _reply(send, 200, {"jsonrpc": "2.0", "id": message["id"], **self._listing})
            case "POST", "tools/call":
                self.calls += 1
                await _reply(send, 200, self._answer)
            case "POST", "server/discover":
                await _reply(send, 400, "")
            case "POST", _:
                await _reply(send, 202, "")
            case _:
                await _reply(send, 404, "")


async def _body(receive: Any) -> bytes:
    whole, more = b"", True
    while more:
        event = await receive()
        whole, more = whole + event.get("body", b""), event.get("more_body", False)
    return whole


async def _reply(send: Any, status: int, body: Any) -> None:
    is_json = isinstance(body, dict)
    kind = b"application/json" if is_json else b"text/event-stream" if body else b"text/plain"
    headers = [(b"content-type", kind), (b"mcp-session-id", b"one")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode() if is_json else body.encode()})


async def test_a_call_whose_stream_broke_off_is_not_sent_again_though_its_session_is_gone():
    server = RawServer("id: 1\nretry: 1\ndata:\n\n")
    async with served(server) as url, door_to(http_spec(url)) as door:
        with pytest.raises(ServerUnavailable) as caught:
            await door.call("buy")
        assert server.calls == 1
        assert caught.value.unknown


async def test_a_real_server_that_closes_its_streams_is_asked_for_the_rest_and_the_call_made_once():
    effects: list[str] = []
    mcp = FastMCP("polled")

    @mcp.tool
    async def buy(what: str, ctx: Context) -> str:
        effects.append(what)
        await ctx.close_sse_stream()
        return f"bought {what}"

    app = Gate(mcp.http_app(event_store=EventStore(), retry_interval=10))
    async with served(app, lifespan="on") as url, door_to(http_spec(url)) as door:
        connection: Any = door.pool.connection(door.spec)
        connection._mode = "legacy"  # the newer protocol has no event ids
        assert await door.call("buy", what="tea") == "bought tea"
        assert effects == ["tea"]
        assert any("last-event-id" in headers for headers in app.headers)


def event(size: int) -> str:
    """Return an answer of *size* characters as one event."""
    result = {"content": [{"type": "text", "text": "x" * size}]}
    return f"data: {json.dumps({'jsonrpc': '2.0', 'id': 0, 'result': result})}\n\n"


async def test_an_answer_of_two_mebibytes_comes_through_a_stream_of_events():
    async with served(RawServer(event(2 << 20))) as url, door_to(http_spec(url)) as door:
        assert len(await door.call("buy")) == 2 << 20


async def test_an_event_that_is_too_large_fails_its_call(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ot.proxied.transports.MAX_REPLY_BYTES", 200_000)
    async with served(RawServer(event(300_000))) as url, door_to(http_spec(url)) as door:
        with pytest.raises(ServerUnavailable, match="200000") as caught:
            await door.call("buy")
        assert caught.value.unknown


async def test_a_server_that_cannot_list_is_quoted_whatever_it_said_before():
    error = {"code": -32603, "message": "the database is down"}
    server = RawServer("", {"error": error})
    async with served(server) as url, door_to(http_spec(url)) as door:
        with pytest.raises(ServerUnavailable, match="the database is down"):
            await door.call("buy")
