"""Serves the MCP server over stdio, from the first byte to an orderly end."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import anyio.to_thread

from ot.server.connection import Connection
from ot.server.wire import CHUNK

logger = logging.getLogger(__name__)

MAX_STARTS = 10
INTERRUPTED = 128 + 2
"""What a shell says of a program that SIGINT has ended."""
SCRIPT = 'read -r word; [ "$word" = done ] || kill -s KILL -- "-$1"'


async def serve_stdio(connection: Connection) -> None:
    """Serve until the input ends or a signal asks for the end; then drain, and let go of everything."""
    watchdog = Watchdog()

    def began(serving: asyncio.Future[None]) -> None:
        end_on_signal(serving, connection.drain, watchdog.end_now)
        logger.info("serving MCP on standard input and output")

    try:
        await connection.serve(*await stdio_pipes(), began)
    finally:
        watchdog.release()


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
            asyncio.get_running_loop().add_reader(self._pidfd, self._handle_death)

    def _handle_death(self) -> None:
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


# ---------------------------------------------------------------- the pipes


async def stdio_pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter | int]:
    """Return streams on private copies of fds 0 and 1; what cannot be waited for is written to by its fd."""
    wire_in, wire_out = _claim(0, os.open(os.devnull, os.O_RDONLY)), _claim(1, os.dup(2))
    return await _reader(wire_in), await _writer(wire_out)


def _claim(fd: int, diversion: int) -> int:
    """Return a private copy of *fd*, which from now on leads elsewhere: prints and children cannot reach the wire."""
    private = os.dup(fd)
    os.set_inheritable(private, False)
    os.dup2(diversion, fd)
    os.close(diversion)
    return private


async def _reader(fd: int) -> asyncio.StreamReader:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=CHUNK)
    protocol = asyncio.StreamReaderProtocol(reader)
    try:
        _require_waitable(fd)
        await loop.connect_read_pipe(lambda: protocol, os.fdopen(fd, "rb", 0))
    except (ValueError, PermissionError, OSError):
        # A regular file cannot be waited for: it is read whole, as `onetool serve < file` means it.
        with os.fdopen(os.dup(fd), "rb") as file:
            reader.feed_data(await anyio.to_thread.run_sync(file.read))
        reader.feed_eof()
    return reader


async def _writer(fd: int) -> asyncio.StreamWriter | int:
    loop = asyncio.get_running_loop()
    try:
        _require_waitable(fd)
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop=loop), os.fdopen(fd, "wb", 0)
        )
    except (ValueError, PermissionError, OSError):
        return fd
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _require_waitable(fd: int) -> None:
    """Check that an event loop can wait for *fd*; asked to wait for a file or /dev/null, uvloop aborts the process."""
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)):
        raise OSError("not a pipe, socket or terminal")
