"""Speaks MCP over HTTP: one request, one answer, no session in between."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.http import set_http_request
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.requests import Request

from onetool_team.http.asgi import Message, Receive, Scope, Send, header
from onetool_team.http.single_exchange import SingleCall

VERSION = b"mcp-protocol-version"
HANDSHAKE = frozenset(version.encode() for version in HANDSHAKE_PROTOCOL_VERSIONS)


class StreamableHttp:
    """An ASGI application that answers the requests of both eras, each on its own.

    For a client of the modern era the library opens a stream of events only when there is something to tell; for one
    of the handshake era it always does, and that is half of what a call costs. So a call of such a client that does
    not ask for progress is answered here.
    """

    def __init__(self, server: FastMCP, body_bytes: int) -> None:
        """Answer for *server* requests of at most *body_bytes*."""
        self._protocol = server._mcp_server  # pyright: ignore[reportPrivateUsage] - FastMCP's own application admits 4 MiB only
        # Else all tools are listed before each call, for parameters that schemas want in headers: ours want none.
        self._protocol.get_tool_input_schema = _no_parameters_in_headers
        self._manager = StreamableHTTPSessionManager(self._protocol, stateless=True, max_request_body_size=body_bytes)
        self._state: Any = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Answer while the block lasts."""
        async with self._protocol.lifespan(self._protocol) as self._state, self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope)
        token = set_transport("streamable-http")
        try:
            with set_http_request(request):
                await self._answer(request, scope, receive, send)
        finally:
            reset_transport(token)

    async def _answer(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_handshake(scope):
            await self._manager.handle_request(scope, receive, send)
            return
        body = await _body(receive)
        if call := SingleCall.read(request, body):
            answer = await _while_wanted(call.answer_with(self._protocol, self._state, request), receive)
            if answer is not None:
                await _send_json(send, answer)
        else:
            await self._manager.handle_request(scope, _replaying(body, receive), send)


def _no_parameters_in_headers(_tool: str) -> None:
    return None


def _is_handshake(scope: Scope) -> bool:
    given = header(scope, VERSION)
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


async def _while_wanted[T](work: Awaitable[T], receive: Receive) -> T | None:
    """Return the result of *work*, or cancel it and return None when the client has gone."""
    working = asyncio.current_task()
    assert working is not None
    is_left = False

    async def watch() -> None:
        nonlocal is_left
        while (await receive())["type"] != "http.disconnect":
            pass
        is_left = True
        working.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if not is_left:
            raise
        working.uncancel()
        return None
    finally:
        watching.cancel()


async def _send_json(send: Send, body: bytes) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
