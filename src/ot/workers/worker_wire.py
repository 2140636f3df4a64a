"""WorkerWire: the frames that a worker's process is sent, and the messages that come back until it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ot.errors import ToolBusy
from ot.processes.guarded_process import Ending, GuardedProcess
from ot_sdk import wire

logger = logging.getLogger(__name__)

UNSENT_BYTES = 1 << 16
"""What may wait in the pipe before another call is written out."""
STALL_SECONDS = 1.0


class WorkerWire:
    """Both directions of one process; nothing that it writes stops the reading."""

    def __init__(self, pack: str) -> None:
        """Speak to the process of *pack*, once that is started."""
        self.written = 0
        """Bytes that it was sent so far."""
        self.take: Callable[[wire.Message], None] = lambda message: None
        self._pack = pack
        self._splitter = wire.FrameSplitter()
        self._hung_up = False

    async def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, memory_mb: int) -> None:
        """Start the process at the other end; every message of it goes to ``take``.

        Raises:
            OSError: It cannot be started.
        """
        self.process = await GuardedProcess.start(
            argv, env=env, cwd=cwd, memory_mb=memory_mb or None, on_output=self._hear, keep_unread=True
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing comes back any more."""
        return self._hung_up or not self.process.running

    @property
    def read_bytes(self) -> int:
        """How much it has read of what it was sent, once it has ended."""
        return self.written - self.process.unread_bytes

    def write(self, frame: bytes) -> None:
        """Send one frame, whether or not there is room for it."""
        self.written += len(frame)
        self.process.stdin.write(frame)

    async def send(self, message: wire.Message) -> None:
        """Return when *message* was sent, or cannot be any more."""
        try:
            self.write(wire.to_frame(message))
            await self.process.stdin.drain()
        except (ConnectionError, OSError) as error:
            logger.debug("the worker of %s takes nothing any more: %s", self._pack, error)

    async def room(self, tool: str) -> None:
        """Return when the worker has read what it was sent; large arguments are written out one after the other.

        Raises:
            ToolBusy: It reads nothing.
        """
        stdin = self.process.stdin
        while (unsent := stdin.transport.get_write_buffer_size()) > UNSENT_BYTES:
            # When the pipe breaks, the end of the worker's output tells the rest.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(STALL_SECONDS):
                    await stdin.drain()
            if self.is_over:
                return
            if stdin.transport.get_write_buffer_size() == unsent:
                raise ToolBusy(tool, "its worker does not read what it is sent")

    def _hear(self, data: bytes) -> None:
        for message in self._splitter.feed(data):
            try:
                self.take(message)
            except Exception:
                # What a worker says is other people's doing, and the wire must outlive all of it.
                logger.warning("a message from the worker of %s was not understood", self._pack, exc_info=True)

    async def ended(self) -> Ending:
        """Return how the process ended."""
        await self.process.output_ended()
        self._hung_up = True
        # A tool may have closed the wire without ending: such a process answers nobody any more.
        ending = await self.process.wait_at_most()
        if self._splitter.skipped:
            logger.warning("%d lines from the worker of %s were malformed", self._splitter.skipped, self._pack)
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
