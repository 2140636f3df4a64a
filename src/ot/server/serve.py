"""Serves the MCP server over stdio, from the first byte to an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport

from ot.server.drain import Drain
from ot.server.stdio import Wire, stdio_streams
from ot.server.watchdog import Watchdog

logger = logging.getLogger(__name__)

START_SECONDS = 3.0
"""How long an end waits for a start that is still under way."""


CUT_OFF_SECONDS = 2.0
"""How long the replies of runs that were cut off may take."""


async def serve_stdio(
    server: FastMCP, start: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]], drain: Drain
) -> None:
    """Serve until the input ends or a signal asks for the end; then *drain*, and let go of everything."""
    watchdog = Watchdog()
    token = set_transport("stdio")
    try:
        async with stdio_streams() as (incoming, outgoing, wire), server._lifespan_manager():  # pyright: ignore[reportPrivateUsage] - FastMCP gives its own stdio transport no other way in
            starting = asyncio.ensure_future(start())
            protocol = server._mcp_server  # pyright: ignore[reportPrivateUsage] - as above
            serving = asyncio.ensure_future(protocol.run(incoming, outgoing, protocol.create_initialization_options()))
            _end_on_signal(serving, partial(_drained, drain, wire))
            logger.info("serving MCP on standard input and output")
            with contextlib.suppress(asyncio.CancelledError):
                await serving
            # Cut off while it starts, an engine could not be closed, and its threads would outlive the interpreter.
            await asyncio.wait((starting,), timeout=START_SECONDS)
    finally:
        reset_transport(token)
        await close()
        watchdog.release()


async def _drained(drain: Drain, wire: Wire) -> None:
    """Return when every request has its answer: by itself, or because its time was over."""
    seconds = drain.begin()
    logger.info("asked to end: open runs have %g s", seconds)
    if not await wire.all_answered(seconds):
        drain.cut_off()
        await wire.all_answered(CUT_OFF_SECONDS)


def _end_on_signal(serving: asyncio.Future[None], drained: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """End by itself when asked by SIGTERM or SIGHUP, at once by SIGINT or when asked again."""
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []

    def drain() -> None:
        if draining or serving.done():
            serving.cancel()
            return
        draining.append(asyncio.ensure_future(drained()))
        draining[0].add_done_callback(lambda _: serving.cancel())
        serving.add_done_callback(lambda _: draining[0].cancel())

    ends = {signal.SIGINT: serving.cancel, signal.SIGTERM: drain}
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:  # else it was started by nohup
        ends[hang_up] = drain
    for number, end in ends.items():
        with contextlib.suppress(NotImplementedError, ValueError):  # Windows, or a thread of a test
            loop.add_signal_handler(number, end)
