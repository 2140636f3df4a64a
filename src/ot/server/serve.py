"""Serves the MCP server over stdio, from the first byte to an orderly end."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.tools import ToolResult

from ot.server.stdio import Wire, stdio_streams

logger = logging.getLogger(__name__)

START_SECONDS = 3.0
"""How long an end waits for a start that is still under way."""
CUT_OFF_SECONDS = 2.0
"""How long the replies of runs that were cut off may take."""
ENDING = "ServerEnding: the server is shutting down and starts nothing new; nothing has run. Reconnect and try again"
CUT_OFF = (
    "ServerEnding: the server was asked to end, and the run was not over after limits.drain_seconds ({seconds:g} s). "
    "It was stopped; calls of tools that had returned by then have taken effect, and ot.effects() lists those of which "
    "nobody knows"
)
MAX_STARTS = 10
INTERRUPTED = 128 + 2
"""What a shell says of a program that SIGINT has ended."""
SCRIPT = 'read -r word; [ "$word" = done ] || kill -s KILL -- "-$1"'


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
            end_on_signal(serving, partial(_drained, drain, wire), watchdog.end_now)
            logger.info("serving MCP on standard input and output")
            with suppress(asyncio.CancelledError):
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


def end_on_signal(
    serving: asyncio.Future[None], drained: Callable[[], Coroutine[Any, Any, None]], force: Callable[[], None]
) -> None:
    """Drain when asked by SIGTERM or SIGHUP, stop serving by SIGINT or when asked again; *force* by a second SIGINT."""
    loop = asyncio.get_running_loop()
    draining: list[asyncio.Task[None]] = []
    interrupts = itertools.count()

    def interrupt() -> None:
        if next(interrupts):
            force()
        serving.cancel()

    def drain() -> None:
        if draining or serving.done():
            serving.cancel()
            return
        draining.append(asyncio.ensure_future(drained()))
        draining[0].add_done_callback(lambda _: serving.cancel())
        serving.add_done_callback(lambda _: draining[0].cancel())

    ends: dict[int, Callable[[], object]] = {signal.SIGINT: interrupt, signal.SIGTERM: drain}
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:  # else it was started by nohup
        ends[hang_up] = drain
    for number, end in ends.items():
        with suppress(NotImplementedError, ValueError):  # Windows, or a thread of a test
            loop.add_signal_handler(number, end)


class Drain:
    """The runs that are open when the server is asked to end have a while to do so, and no others begin."""

    def __init__(self, seconds: Callable[[], float] = lambda: 0.0) -> None:
        """Give open runs *seconds*, asked for when it begins."""
        self._seconds = seconds
        self._open: set[asyncio.Task[object]] = set()
        self._begun = self._over = False
        self._ended = asyncio.Event()

    def begin(self) -> float:
        """Let no run begin any more, and return how long open ones may take."""
        self._begun = True
        return self._seconds()

    def cut_off(self) -> None:
        """Stop the runs that are open: their replies say why."""
        self._over = True
        for task in self._open:
            task.cancel()

    async def all_over(self, seconds: float) -> bool:
        """Return whether all runs that are open have ended within *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._open:
                    self._ended.clear()
                    await self._ended.wait()
        return not self._open

    async def answer[T](self, run: Callable[[], Awaitable[T]], *, goes_on: bool = False) -> T | ToolResult:
        """Return what *run* returns, or that the server is ending; one that *goes_on* had begun before."""
        task = asyncio.current_task()
        assert task is not None
        if self._begun and not goes_on:
            return _ending(ENDING, begun=False)
        if self._over:
            return _ending(CUT_OFF.format(seconds=self._seconds()), begun=True)
        self._open.add(task)
        try:
            return await run()
        except asyncio.CancelledError:
            if not self._over:
                raise
            task.uncancel()
            return _ending(CUT_OFF.format(seconds=self._seconds()), begun=True)
        finally:
            self._open.discard(task)
            self._ended.set()


def _ending(text: str, *, begun: bool) -> ToolResult:
    return ToolResult(content=text, meta={"onetool": {"error": "ServerEnding", "begun": begun}}, is_error=True)


class Watchdog:
    """However the server dies, nothing that it started lives on; a watchdog that dies is started again.

    A program that computes does not notice that the server is gone before its time is up. So the server makes a
    process group of its own, and a shell outside of it waits on a pipe that only the server holds: when that breaks,
    the shell kills the group.
    """

    def __init__(self) -> None:
        """Start watching; at a terminal, and where there are no process groups, nothing is watched."""
        self._shell: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._left = MAX_STARTS
        if sys.platform == "win32" or sys.stdin.isatty():
            return
        with suppress(PermissionError):  # the leader of a session leads its group already
            os.setpgid(0, 0)
        # The client's own group must never be meant.
        if os.getpgrp() == os.getpid():
            self._start()

    def _start(self) -> None:
        self._left -= 1
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", SCRIPT, "onetool-watchdog", str(os.getpid())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        with suppress(OSError, AttributeError):  # elsewhere than on Linux nothing tells
            self._pidfd = os.pidfd_open(self._shell.pid)
            asyncio.get_running_loop().add_reader(self._pidfd, self._died)

    def _died(self) -> None:
        logger.warning("the watchdog was killed%s", " and is started again" if self._left else "")
        self._bury(b"")
        if self._left:
            self._start()

    def end_now(self) -> None:
        """End this process at once, where something is left behind that ends all that it has started."""
        if self._shell is not None:
            os._exit(INTERRUPTED)

    def release(self) -> None:
        """Stop watching: the server has let go of everything itself."""
        self._bury(b"done\n")

    def _bury(self, last_words: bytes) -> None:
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        if self._shell is not None and self._shell.stdin is not None:
            with suppress(OSError):
                self._shell.stdin.write(last_words)
                self._shell.stdin.close()
            self._shell.wait(timeout=5)
            self._shell = None
