"""Answers that come as a stream of events: how large they may be, and what is not sent again when they break off."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastmcp import Context, FastMCP
from fastmcp.server.event_store import EventStore

from ot.errors import ServerUnavailable
from servers.desk import Gate, door_to, http_spec, served

pytestmark = pytest.mark.anyio


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
    monkeypatch.setattr("ot.servers.transports.MAX_REPLY_BYTES", 200_000)
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
