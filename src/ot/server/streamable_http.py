"""Speaks MCP over HTTP: one request, one answer, no session in between."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.http import set_http_request
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request


class StreamableHttp:
    """An ASGI application that answers the requests of both eras, each on its own."""

    def __init__(self, server: FastMCP, body_bytes: int) -> None:
        """Answer for *server* requests of at most *body_bytes*."""
        protocol = server._mcp_server  # pyright: ignore[reportPrivateUsage] - FastMCP's own application admits 4 MiB only
        # Else all tools are listed before each call, for parameters that schemas want in headers: ours want none.
        protocol.get_tool_input_schema = _no_parameters_in_headers
        self._manager = StreamableHTTPSessionManager(protocol, stateless=True, max_request_body_size=body_bytes)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Answer while the block lasts."""
        async with self._manager.run():
            yield

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        token = set_transport("streamable-http")
        try:
            with set_http_request(Request(scope)):
                await self._manager.handle_request(scope, receive, send)
        finally:
            reset_transport(token)


def _no_parameters_in_headers(_tool: str) -> None:
    return None
