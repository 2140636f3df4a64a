"""WorkerWire: the frames that a worker's process is sent, and the messages that come back until it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from ot.errors import ToolBusy
from ot.processes.guarded_process import Ending, GuardedProcess
from ot_sdk import wire

logger = logging.getLogger(__name__)

CHUNK = 1 << 16
UNSENT_BYTES = 1 << 16
"""What may wait in the pipe before another call is written out."""
STALL_SECONDS = 1.0


class WorkerWire:
    """Both directions of one process; nothing that it writes stops the reading."""

    def __init__(self, pack: str, process: GuardedProcess) -> None:
        """Speak to the *process* of *pack*."""
        self.written = 0
        """Bytes that it was sent so far."""
        self._pack = pack
        self._process = process
        self._hung_up = False

    @property
    def is_over(self) -> bool:
        """Whether nothing comes back any more."""
        return self._hung_up or not self._process.running

    @property
    def read_bytes(self) -> int:
        """How much it has read of what it was sent, once it has ended."""
        return self.written - self._process.unread_bytes

    def write(self, frame: bytes) -> None:
        """Send one frame, whether or not there is room for it."""
        self.written += len(frame)
        self._process.stdin.write(frame)

    async def send(self, message: wire.Message) -> None:
        """Return when *message* was sent, or cannot be any more."""
        try:
            self.write(wire.to_frame(message))
            await self._process.stdin.drain()
        except (ConnectionError, OSError) as error:
            logger.debug("the worker of %s takes nothing any more: %s", self._pack, error)

    async def room(self, tool: str) -> None:
        """Return when the worker has read what it was sent; large arguments are written out one after the other.

        Raises:
            ToolBusy: It reads nothing.
        """
        stdin = self._process.stdin
        while (unsent := stdin.transport.get_write_buffer_size()) > UNSENT_BYTES:
            # When the pipe breaks, the end of the worker's output tells the rest.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(STALL_SECONDS):
                    await stdin.drain()
            if self.is_over:
                return
            if stdin.transport.get_write_buffer_size() == unsent:
                raise ToolBusy(tool, "its worker does not read what it is sent")

    async def read(self, take: Callable[[wire.Message], None]) -> Ending:
        """Give every message to *take*, and return how the process ended."""
        splitter = wire.FrameSplitter()
        while data := await self._process.stdout.read(CHUNK):
            for message in splitter.feed(data):
                try:
                    take(message)
                except Exception:
                    # What a worker says is other people's doing, and the one reader must outlive all of it.
                    logger.warning("a message from the worker of %s was not understood", self._pack, exc_info=True)
        self._hung_up = True
        # A tool may have closed the wire without ending: such a process answers nobody any more.
        ending = await self._process.wait_at_most()
        if splitter.skipped:
            logger.warning("%d lines from the worker of %s were malformed", splitter.skipped, self._pack)
        return ending


def is_reply(message: wire.Message) -> bool:
    """Return whether *message* has the parts of a result or of an error."""
    problem = message.get("error")
    if problem is None:
        return isinstance(message.get("result"), dict)
    return (
        isinstance(problem, dict)
        and {"code", "message", "data"} <= problem.keys()
        and isinstance(problem["data"], dict)
    )  # pyright: ignore[reportUnknownMemberType] - checked here
