"""The pipes of standard input and output, as streams: prints and children cannot reach them."""

from __future__ import annotations

import asyncio
import os
import stat

import anyio.to_thread

from ot.server.wire import CHUNK


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
    """Return when an event loop can wait for *fd*; asked to wait for a file or /dev/null, uvloop aborts the process."""
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)):
        raise OSError("not a pipe, socket or terminal")
