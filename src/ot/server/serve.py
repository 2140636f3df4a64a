"""Serves the MCP server over stdio, from the first byte to an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable

from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport

from ot.server.stdio import stdio_streams
from ot.server.watchdog import Watchdog

logger = logging.getLogger(__name__)

START_SECONDS = 3.0
"""How long an end waits for a start that is still under way."""


async def serve_stdio(
    server: FastMCP, start: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]]
) -> None:
    """Serve until the input ends or a signal asks for the end; then let go of everything."""
    watchdog = Watchdog()
    token = set_transport("stdio")
    try:
        async with stdio_streams() as (incoming, outgoing), server._lifespan_manager():  # pyright: ignore[reportPrivateUsage] - FastMCP gives its own stdio transport no other way in
            starting = asyncio.ensure_future(start())
            protocol = server._mcp_server  # pyright: ignore[reportPrivateUsage] - as above
            serving = asyncio.ensure_future(protocol.run(incoming, outgoing, protocol.create_initialization_options()))
            _end_on_signal(serving)
            logger.info("serving MCP on standard input and output")
            with contextlib.suppress(asyncio.CancelledError):
                await serving
            # Cut off while it starts, an engine could not be closed, and its threads would outlive the interpreter.
            await asyncio.wait((starting,), timeout=START_SECONDS)
    finally:
        reset_transport(token)
        await close()
        watchdog.release()


def _end_on_signal(serving: asyncio.Future[None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, ValueError):  # Windows, or a thread of a test
            loop.add_signal_handler(number, serving.cancel)
