"""Warms up: what the first request would pay for is done before the server says that it is ready."""

from __future__ import annotations

import orjson

from ot.team.http.asgi import AsgiApp, Headers, Message, Scope

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "onetool", "version": "1"},
}
JSON: Headers = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]


async def warm_up(mcp: AsgiApp) -> None:
    """Let *mcp* list its tools once in each era: imports and compiled schemas stay."""
    modern = [(b"mcp-protocol-version", MODERN.encode()), (b"mcp-method", b"tools/list")]
    await _list_tools(mcp, {"_meta": META}, [*JSON, *modern])
    await _list_tools(mcp, {}, JSON)


async def _list_tools(mcp: AsgiApp, params: dict[str, object], headers: Headers) -> None:
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(_message: Message) -> None:
        return

    await mcp(_scope(headers), receive, send)


def _scope(headers: Headers) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), *headers],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 0),
        "state": {},
    }
