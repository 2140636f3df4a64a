"""Speaks MCP over HTTP: one request, one answer, no session in between."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.http import set_http_request
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request

VERSION = b"mcp-protocol-version"
HANDSHAKE = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)
PROGRESS = b'"progressToken"'

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class StreamableHttp:
    """An ASGI application that answers the requests of both eras, each on its own.

    A stream of events is opened for those who may need one: a client of the handshake era that asks for progress, and
    any client of the modern era, for which the library opens it only when there is something to tell. For the others
    a stream would be half of what the whole request costs.
    """

    def __init__(self, server: FastMCP, body_bytes: int) -> None:
        """Answer for *server* requests of at most *body_bytes*."""
        protocol = server._mcp_server  # pyright: ignore[reportPrivateUsage] - FastMCP's own application admits 4 MiB only
        # Else all tools are listed before each call, for parameters that schemas want in headers: ours want none.
        protocol.get_tool_input_schema = _no_parameters_in_headers
        both: dict[str, Any] = {"stateless": True, "max_request_body_size": body_bytes}
        self._plain = StreamableHTTPSessionManager(protocol, json_response=True, **both)
        self._streaming = StreamableHTTPSessionManager(protocol, json_response=False, **both)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Answer while the block lasts."""
        async with self._plain.run(), self._streaming.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        token = set_transport("streamable-http")
        try:
            with set_http_request(Request(scope)):
                await self._answered(scope, receive, send)
        finally:
            reset_transport(token)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_handshake(scope):
            await self._streaming.handle_request(scope, receive, send)
            return
        body = await _body(receive)
        if PROGRESS in body:
            await self._streaming.handle_request(scope, _replaying(body, receive), send)
        else:
            await _while_wanted(self._plain.handle_request, scope, _replaying(body, receive), receive, send)


def _no_parameters_in_headers(_tool: str) -> None:
    return None


def _is_handshake(scope: Scope) -> bool:
    given = next((value for name, value in scope["headers"] if name == VERSION), None)
    return given is None or given in HANDSHAKE


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """Return a way to receive that gives *body* first, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


async def _while_wanted(
    app: Callable[[Scope, Receive, Send], Awaitable[None]], scope: Scope, body: Receive, receive: Receive, send: Send
) -> None:
    """Let *app* answer, and cancel it when whoever asked has gone: it does not look itself."""
    answering = asyncio.current_task()
    assert answering is not None
    is_answered = is_left = False

    async def watch() -> None:
        nonlocal is_left
        while (await receive())["type"] != "http.disconnect":
            pass
        if not is_answered:
            is_left = True
            answering.cancel()

    async def send_last(message: Message) -> None:
        nonlocal is_answered
        is_answered = message["type"] == "http.response.body" and not message.get("more_body", False)
        await send(message)

    watching = asyncio.ensure_future(watch())
    try:
        await app(scope, body, send_last)
    except asyncio.CancelledError:
        if not is_left:
            raise
        answering.uncancel()
    finally:
        watching.cancel()
