"""Warms up: what the first request would pay for is done before the server says that it is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from onetool_team.http.asgi import AsgiApp, Headers, Message, Scope

MODERN, CLASSIC = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "onetool", "version": "1"},
}
JSON: Headers = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
NO_TOOL: dict[str, Any] = {"name": "", "arguments": {}}
"""A call that goes all the way to the tools, and finds none."""


async def warm_up(mcp: AsgiApp) -> None:
    """Let *mcp* answer what clients of each era ask first: imports and compiled schemas stay."""
    for method, params in (("tools/list", {}), ("tools/call", NO_TOOL)):
        await _ask(mcp, method, {**params, "_meta": META}, MODERN)
        await _ask(mcp, method, params, CLASSIC)
        await _ask(mcp, method, {**params, "_meta": {"progressToken": 1}}, CLASSIC)


async def _ask(mcp: AsgiApp, method: str, params: Mapping[str, Any], version: str) -> None:
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    is_answered = asyncio.Event()

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await is_answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            is_answered.set()

    names = [(b"mcp-protocol-version", version.encode()), (b"mcp-method", method.encode()), (b"mcp-name", b"")]
    await mcp(_scope([*JSON, *names]), receive, send)


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
