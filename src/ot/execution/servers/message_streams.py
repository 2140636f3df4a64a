"""The two streams of a server's process as the protocol's library wants them: messages in, messages out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel
import anyio.to_thread
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest

from ot.execution.servers.bounded_message import QUICK_BYTES, Allowance, read_message
from ot.execution.servers.call_trace import current_trace
from ot.execution.servers.line_reader import LineReader
from ot.execution.servers.server_noise import ServerNoise
from ot.execution.workers.guarded_process import GuardedProcess

LIST_CHANGED = "notifications/tools/list_changed"
TURN = 20
"""Lines that are read before others get their turn."""


class _Stream:
    """What both streams share: a block in which they are open."""

    closed = False

    async def aclose(self) -> None:
        self.closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()


class MessageReader(_Stream):
    """Gives the messages of a process, and skips what is none."""

    def __init__(
        self,
        lines: LineReader,
        noise: ServerNoise,
        changed: Callable[[], None],
        ended: Callable[[], Awaitable[None]],
    ) -> None:
        """Read *lines*; *changed* hears of new lists of tools, *ended* of the end, before anyone who waits does."""
        self._lines = lines
        self._noise = noise
        self._changed = changed
        self._ended = ended
        self._allowance = Allowance()
        self._read = 0

    def __aiter__(self) -> MessageReader:
        return self

    async def __anext__(self) -> SessionMessage:
        while (line := await self._lines.line()) is not None:
            self._read += 1
            if self._read % TURN == 0:
                await anyio.lowlevel.checkpoint()  # lines that are there already are read without a pause
            message = await self._message(line)
            if message is not None:
                return message
        await self._ended()
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def _message(self, line: bytes) -> SessionMessage | None:
        try:
            long = len(line) > QUICK_BYTES
            message = await anyio.to_thread.run_sync(read_message, line) if long else read_message(line)
        except (ValueError, RecursionError):
            self._noise.add(line)
            return None
        if isinstance(message, JSONRPCNotification) and message.method == LIST_CHANGED:
            # Here it costs next to nothing, however many come; behind this line each is a task of its own.
            self._changed()
            return None
        if isinstance(message, JSONRPCNotification | JSONRPCRequest) and not self._allowance.takes():
            return None
        return SessionMessage(message)


class MessageWriter(_Stream):
    """Writes messages to a process."""

    def __init__(self, process: GuardedProcess) -> None:
        """Write to *process*."""
        self.broken = False
        """Whether it turned out that nothing can be written any more."""
        self._process = process

    async def send(self, item: SessionMessage, /) -> None:
        stdin: Any = self._process.stdin
        if self.closed or not self._process.running or stdin.is_closing():
            self.broken = True
            raise anyio.ClosedResourceError
        frame = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        if trace := current_trace.get():
            trace.sent = True
        stdin.write(frame + b"\n")
        try:
            await stdin.drain()
        except OSError:
            self.broken = True
            raise anyio.BrokenResourceError from None
