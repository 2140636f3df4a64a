"""How a server is reached: as a process of ours under the guard that no process outlives, or at an address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from fastmcp.client.transports.base import ClientTransport, SessionKwargs, TransportOptions
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from ot.config.paths import expand_home
from ot.errors import ServerUnavailable
from ot.processes.guarded_process import Ending, GuardedProcess
from ot.servers.auth.token_auth import TokenAuth
from ot.servers.call import current_trace
from ot.servers.messages import MAX_BYTES, MAX_PARTS, MessageReader, MessageWriter, OutputLines, StrayOutput
from ot.servers.place import ADVICE, changed_files, find_program, make_home
from ot.servers.spec import ServerSpec
from ot.servers.tool_lists import RepairedMessages, ToolLists
from ot.values.parts import MARKS, has_many_parts

PROCESSES = 512
"""A browser that a server drives has dozens."""
ENDING_SECONDS = 2.0
LAST_WORDS = 500
MAX_REPLY_BYTES = MAX_BYTES
EVENTS = "text/event-stream"
READ_SECONDS = 300.0


class PassingSession(ClientSession):
    """A client session for a proxy: it is the caller who judges a result, and lists are not fetched for it."""

    async def validate_tool_result(self, name: str, result: CallToolResult) -> None:
        """Take the result as it is: a server's own mistake about its schema loses nobody a value."""


class StdioTransport(ClientTransport):
    """Starts the server's process with each connection, and ends it with the connection."""

    def __init__(
        self, spec: ServerSpec, stray: StrayOutput, callbacks: SessionKwargs, changed: Callable[[], None]
    ) -> None:
        """Run the command of *spec*; *changed* hears that its list of tools is another."""
        self.ending: Ending | None = None
        self.ended = asyncio.Event()
        self._spec = spec
        self._stray = stray
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
            lines = OutputLines(process.stdout, self._stray)
            reader = MessageReader(lines, self._stray, self._changed, self._on_end, ToolLists(self._spec.name))
            kwargs: Any = {**session_kwargs, **self._callbacks}
            self._writer = MessageWriter(process)
            async with PassingSession(reader, self._writer, **kwargs) as session:
                yield session
        except BaseException:
            process.kill()
            raise
        finally:
            with anyio.CancelScope(shield=True):
                self.ending = await process.end(ENDING_SECONDS)
            self.ended.set()

    async def _started(self) -> GuardedProcess:
        spec = self._spec
        cwd = await anyio.to_thread.run_sync(_place, spec)
        program, environ = find_program(spec.command, spec.env, cwd)
        return await GuardedProcess.start(
            [program, *spec.args],
            env=environ,
            cwd=cwd,
            processes=PROCESSES,
            on_line=self._on_line,
        )

    def _on_line(self, line: str) -> None:
        self._stray.say(line)
        self._log.debug("%s", line)

    async def _on_end(self) -> None:
        """Learn how the process ended; one that only closed its output answers nobody any more, and is killed."""
        if self._process:
            self.ending = await self._process.wait_at_most()
            self.ended.set()


def _place(spec: ServerSpec) -> Path:
    """Return where to start, which is made or looked at now: much may have happened since the settings were read."""
    cwd = expand_home(spec.cwd or ".").absolute()
    if spec.private:
        make_home(cwd)
    if spec.seal and (changed := spec.seal.changes()):
        raise PermissionError(f"{cwd} {changed_files(changed)}: {ADVICE}")
    return cwd


class HttpTransport(ClientTransport):
    """Sends the headers of its spec and no others, and notes how far each request got."""

    def __init__(self, spec: ServerSpec, callbacks: SessionKwargs) -> None:
        """Reach the address of *spec*."""
        self._spec = spec
        self._callbacks = callbacks

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Any
    ) -> AsyncGenerator[ClientSession]:
        """Yield a session."""
        kwargs: Any = {**session_kwargs, **self._callbacks}
        async with (
            self._client() as client,
            # The library's own bound is 1 MiB an event: a picture is larger.
            streamable_http_client(self._spec.url, http_client=client, max_sse_event_size=MAX_REPLY_BYTES) as streams,
            PassingSession(RepairedMessages(streams[0], ToolLists(self._spec.name)), *streams[1:], **kwargs) as session,
        ):
            yield session

    def _client(self) -> httpx2.AsyncClient:
        read = max(READ_SECONDS, (self._spec.call_seconds or 0) + 5)
        return httpx2.AsyncClient(
            headers=dict(self._spec.headers),
            auth=TokenAuth(self._spec.account, _on_refusal) if self._spec.account else None,
            timeout=httpx2.Timeout(self._spec.start_seconds, read=read),
            event_hooks={"request": [_on_request], "response": [_on_response]},
        )


def _on_refusal(why: ServerUnavailable | None) -> None:
    if (trace := current_trace.get()) is not None:
        trace.refusal = why


async def _on_request(request: httpx2.Request) -> None:
    trace = current_trace.get()
    if trace is None or request.method != "POST":
        return

    async def note(event: str, details: Any) -> None:
        if event.endswith("send_request_headers.started"):
            trace.sent = True

    request.extensions = {**request.extensions, "trace": note}


async def _on_response(response: httpx2.Response) -> None:
    trace = current_trace.get()
    # Only what was sent counts: the library also asks for the rest of a stream that broke off, and says goodbye.
    if trace is not None and response.request.method == "POST":
        trace.taken = trace.taken or response.is_success
        trace.status = response.status_code if response.is_error else 0
    response.stream = _Bounded(response.stream, response.headers.get("content-type", "").startswith(EVENTS))


class _Bounded(httpx2.AsyncByteStream):
    """A body of no more bytes and parts than can be read in a moment; in a stream of events, each event."""

    def __init__(self, stream: Any, events: bool) -> None:
        self._stream = stream
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held: list[bytes] = []
        size = marks = 0
        suspicious = MAX_PARTS
        async for chunk in self._stream:
            if self._events and (b"\n\n" in chunk or b"\r\n\r\n" in chunk):
                held, size, marks, suspicious = [], 0, 0, MAX_PARTS
            held.append(chunk)
            size += len(chunk)
            marks += sum(chunk.count(mark) for mark in MARKS)
            if size > MAX_REPLY_BYTES and not self._events:  # an event's size is the library's to bound
                raise httpx2.StreamError(f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")
            if marks > suspicious:  # unless most of them stand in texts
                suspicious = 2 * marks
                if has_many_parts(b"".join(held), MAX_PARTS):
                    raise httpx2.StreamError(f"the reply holds more than {MAX_PARTS:,} parts")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
