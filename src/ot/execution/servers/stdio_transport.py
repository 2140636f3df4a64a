"""StdioTransport: a server that is a process of ours, under the guard that no process outlives."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from fastmcp.client.transports.base import ClientTransport, SessionKwargs, TransportOptions
from mcp import ClientSession

from ot.config.paths import expand_home
from ot.execution.servers.find_program import find_program
from ot.execution.servers.line_reader import LineReader
from ot.execution.servers.message_streams import MessageReader, MessageWriter
from ot.execution.servers.passing_session import PassingSession
from ot.execution.servers.server_home import make_home
from ot.execution.servers.server_noise import ServerNoise
from ot.execution.servers.server_place import ADVICE, changed_words
from ot.execution.servers.server_spec import ServerSpec
from ot.execution.workers.child_environ import worker_environ
from ot.execution.workers.ending import Ending
from ot.execution.workers.guarded_process import GuardedProcess

PROCESSES = 512
"""A browser that a server drives has dozens."""
LEAVE_SECONDS = 2.0
LAST_WORDS = 500
SILENT_SECONDS = 0.5
"""How long a process may live on that has closed its end of the wire."""


class StdioTransport(ClientTransport):
    """Starts the server's process with each connection, and ends it with the connection."""

    def __init__(
        self, spec: ServerSpec, noise: ServerNoise, callbacks: SessionKwargs, changed: Callable[[], None]
    ) -> None:
        """Run the command of *spec*; *changed* hears that its list of tools is another."""
        self.ending: Ending | None = None
        self.ended = asyncio.Event()
        self._spec = spec
        self._noise = noise
        self._log = logging.getLogger(f"ot.servers.{spec.name}")
        self._callbacks = callbacks
        self._changed = changed
        self._process: GuardedProcess | None = None
        self._writer: MessageWriter | None = None

    @property
    def over(self) -> bool:
        """Whether the process has ended, or takes nothing any more."""
        return self.ended.is_set() or (self._writer is not None and self._writer.broken)

    @property
    def ending_words(self) -> str:
        """How the process ended, and the last that it wrote on standard error."""
        if self.ending is None:
            return "the connection was lost"
        words = self.ending.stderr.strip()[-LAST_WORDS:]
        return f"its process ended: {self.ending.text}" + (f". Its last words: {words}" if words else "")

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Any
    ) -> AsyncGenerator[ClientSession]:
        """Yield a session with a process of its own."""
        process = self._process = await self._started()
        try:
            lines = LineReader(process.stdout, self._noise)
            reader = MessageReader(lines, self._noise, self._changed, self._on_end)
            kwargs: Any = {**session_kwargs, **self._callbacks}
            self._writer = MessageWriter(process)
            async with PassingSession(reader, self._writer, **kwargs) as session:
                yield session
        except BaseException:
            process.kill()
            raise
        finally:
            with anyio.CancelScope(shield=True):
                self.ending = await process.end(LEAVE_SECONDS)
            self.ended.set()

    async def _started(self) -> GuardedProcess:
        spec = self._spec
        cwd = await anyio.to_thread.run_sync(_place, spec)
        program, environ = find_program(spec.command, {**worker_environ(os.environ), **spec.env}, cwd)
        return await GuardedProcess.start(
            [program, *spec.args],
            env=environ,
            cwd=cwd,
            processes=PROCESSES,
            on_line=self._on_line,
        )

    def _on_line(self, line: str) -> None:
        self._noise.say(line)
        self._log.debug("%s", line)

    async def _on_end(self) -> None:
        """Learn how the process ended; one that only closed its output answers nobody any more, and is killed."""
        process = self._process
        if process is None:
            return
        ending = asyncio.ensure_future(process.wait())
        await asyncio.wait((ending,), timeout=SILENT_SECONDS)
        if not ending.done():
            process.kill()
        self.ending = await ending
        self.ended.set()


def _place(spec: ServerSpec) -> Path:
    """Return where to start, which is made or looked at now: much may have happened since the settings were read."""
    cwd = expand_home(spec.cwd or ".").absolute()
    if spec.private:
        make_home(cwd)
    if spec.seal and (changed := spec.seal.changes()):
        raise PermissionError(f"{cwd} {changed_words(changed)}: {ADVICE}")
    return cwd
