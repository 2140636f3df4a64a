"""A small balancer: each connection goes to the next replica that says it is ready."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from pace import PATIENCE

LOOK_SECONDS = 0.1
"""How often a replica is asked whether it is ready."""
HEAD = b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Balancer:
    """Passes bytes between clients and replicas; it reads none of them."""

    def __init__(self, replicas: Sequence[int]) -> None:
        """Know the replicas by their ports on loopback."""
        self._replicas = replicas
        self._turns = itertools.count()
        self._open: set[asyncio.Task[None]] = set()
        self.ready: set[int] = set()
        self.port = 0
        self.served: dict[int, int] = dict.fromkeys(replicas, 0)
        """How many connections each replica was given."""

    async def look(self) -> None:
        """Ask every replica, again and again, whether it is ready."""
        while True:
            answers = await asyncio.gather(*(_is_ready(port) for port in self._replicas))
            self.ready = {port for port, ready in zip(self._replicas, answers, strict=True) if ready}
            await asyncio.sleep(LOOK_SECONDS)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client with a replica, or close its connection when there is none."""
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._passed(reader, writer)
        finally:
            self._open.discard(task)
            await _closed(writer)

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in self._replicas:
            ready = sorted(self.ready)
            if not ready:
                return
            port = ready[next(self._turns) % len(ready)]
            try:
                upstream = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                self.ready.discard(port)
                continue
            self.served[port] += 1
            asking = asyncio.ensure_future(_copy(reader, upstream[1]))
            try:
                await _copy(upstream[0], writer)  # a replica that is gone ends the client's connection, too
            finally:
                asking.cancel()
                await asyncio.wait((asking,))
                await _closed(upstream[1])
            return

    async def aclose(self) -> None:
        """Close every connection."""
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)


@asynccontextmanager
async def balancing(replicas: Sequence[int], port: int = 0) -> AsyncGenerator[Balancer]:
    """Yield a balancer in front of *replicas*, on *port* of loopback."""
    balancer = Balancer(replicas)
    server = await asyncio.start_server(balancer.serve, "127.0.0.1", port)
    balancer.port = server.sockets[0].getsockname()[1]
    looking = asyncio.ensure_future(balancer.look())
    try:
        async with asyncio.timeout(PATIENCE):
            while len(balancer.ready) < len(replicas):  # noqa: ASYNC110 - it looks in a loop of its own
                await asyncio.sleep(LOOK_SECONDS)
        yield balancer
    finally:
        looking.cancel()
        await asyncio.wait((looking,))
        server.close()
        await balancer.aclose()


async def _is_ready(port: int) -> bool:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(HEAD)
                return b" 200 " in await reader.readline()
            finally:
                await _closed(writer)
    return False


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
