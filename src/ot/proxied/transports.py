"""How a server is reached: as a process under a guard, which nothing it started outlives, or at an address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from fastmcp.client.transports.base import ClientTransport, SessionKwargs, TransportOptions
from mcp import ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, CallToolResult, ErrorData, JSONRPCRequest
from mcp_types.jsonrpc import jsonrpc_message_adapter

from ot.config.paths import expand_home
from ot.processes.guarded_process import Ending, GuardedProcess
from ot.proxied.auth.token_auth import TokenAuth
from ot.proxied.call_trace import note_refusal
from ot.proxied.failure_words import failure_words, status_words
from ot.proxied.http_client import ServerClient
from ot.proxied.http_replies import EVENTS, MAX_REPLY_BYTES, error_message, origin_of
from ot.proxied.messages import MessageReader, MessageStream, MessageWriter, OutputLines, StrayOutput, TakenMessages
from ot.proxied.place import ADVICE, describe_changed_files, find_program, make_home
from ot.proxied.reply_faults import Refused
from ot.proxied.spec import ServerSpec
from ot.proxied.tool_lists import ToolLists

PROCESSES = 512
"""A browser that a server drives has dozens."""
ENDING_SECONDS = 2.0
LAST_WORDS = 500


class PassingSession(ClientSession):
    """A client session for a proxy: it is the caller who judges a result, and lists are not fetched for it.

    Whatever a server says comes through here, and leaves the server's secrets behind.
    """

    def __init__(self, spec: ServerSpec, read_stream: Any, write_stream: Any, **options: Any) -> None:
        """Speak over the two streams of a connection to the server of *spec*."""
        messages = TakenMessages(read_stream, ToolLists(spec.name), spec.redactor)
        super().__init__(messages, write_stream, **options)

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
        self._log = logging.getLogger(f"ot.proxied.{spec.name}")
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
        words = self._spec.redactor().text(self.ending.stderr).strip()[-LAST_WORDS:]
        return f"its process ended: {self.ending.text}" + (f". Its last words: {words}" if words else "")

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Any
    ) -> AsyncGenerator[ClientSession]:
        """Yield a session with a process of its own."""
        process = self._process = await self._start()
        try:
            lines = OutputLines(process.stdout, self._stray)
            reader = MessageReader(lines, self._stray, self._changed, self._on_end)
            kwargs: Any = {**session_kwargs, **self._callbacks}
            self._writer = MessageWriter(process)
            async with PassingSession(self._spec, reader, self._writer, **kwargs) as session:
                yield session
        except BaseException:
            process.kill()
            raise
        finally:
            with anyio.CancelScope(shield=True):
                self.ending = await process.end(ENDING_SECONDS)
            self.ended.set()

    async def _start(self) -> GuardedProcess:
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
        self._log.debug("%s", self._spec.redactor().text(line))

    async def _on_end(self) -> None:
        """Learn how the process ended; one that only closed its output answers nobody any more, and is killed."""
        if self._process:
            self.ending = await self._process.wait_at_most()
            self.ended.set()


def _place(spec: ServerSpec) -> Path:
    """Return where to start, made or checked now: it may have changed since the settings were read."""
    cwd = expand_home(spec.cwd or ".").absolute()
    if spec.private:
        make_home(cwd)
    if spec.seal and (changed := spec.seal.changes()):
        raise PermissionError(f"{cwd} {describe_changed_files(changed)}: {ADVICE}")
    return cwd


class HttpTransport(ClientTransport):
    """Reaches a server at an address, over streamable HTTP or the older stream of events."""

    def __init__(self, spec: ServerSpec, callbacks: SessionKwargs) -> None:
        """Reach the address of *spec*, with its login if it has one."""
        self._spec = spec
        self._callbacks = callbacks
        self._auth = TokenAuth(spec.account, note_refusal) if spec.account else None
        self._events: EventReader | None = None

    @property
    def over(self) -> bool:
        """Whether the one stream that all answers come over has ended."""
        return self._events is not None and self._events.ended

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Any
    ) -> AsyncGenerator[ClientSession]:
        """Yield a session."""
        kwargs: Any = {**session_kwargs, **self._callbacks}
        streams = self._event_streams() if self._spec.transport == "sse" else self._streams()
        async with (
            streams as (messages, writer),
            PassingSession(self._spec, messages, writer, **kwargs) as session,
        ):
            yield session

    @asynccontextmanager
    async def _streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        async with (
            ServerClient(self._spec, self._auth) as client,
            # The library's own bound is 1 MiB an event: a picture is larger.
            streamable_http_client(self._spec.url, http_client=client, max_sse_event_size=MAX_REPLY_BYTES) as streams,
        ):
            yield streams

    @asynccontextmanager
    async def _event_streams(self) -> AsyncGenerator[tuple[Any, Any]]:
        async with (
            ServerClient(self._spec, self._auth, answers_apart=True) as client,
            client.stream("GET", self._spec.url, headers={"accept": EVENTS, "cache-control": "no-store"}) as response,
        ):
            if not response.is_success:
                raise Refused(status_words(response.status_code, self._spec.name))
            reader = self._events = EventReader(response, MAX_REPLY_BYTES)
            yield reader, MessagePoster(client, await reader.endpoint())


# ---------------------------------------------------------------- the older transport

logger = logging.getLogger(__name__)


class EventReader(MessageStream):
    """Gives the messages of a stream of events; one that is malformed is skipped."""

    def __init__(self, response: httpx2.Response, most: int) -> None:
        """Read the events of *response*, each of *most* bytes at most."""
        self.ended = False
        self._response = response
        self._events = aiter(httpx2.EventSource(response, max_event_size=most))

    async def endpoint(self) -> httpx2.URL:
        """Return the address for messages, which is the first event.

        Raises:
            Refused: It is at another origin.
            httpx2.HTTPError: The stream is not one of events, or broke off.
        """
        async for event in self._events:
            if event.event == "endpoint":
                return self._within_origin(event.data)
        raise httpx2.RemoteProtocolError("its event stream ended before it named the address for messages")

    def _within_origin(self, address: str) -> httpx2.URL:
        url = self._response.request.url
        found = url.join(address)
        here, there = origin_of(url), origin_of(found)
        if here != there:
            raise Refused(
                f"it is at {here} but names {there} as the address for messages; nothing was sent there: "
                "report this to its developer"
            )
        return found

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            async for event in self._events:
                if event.event == "message" and event.data and (message := _message(event.data)):
                    return message
        except httpx2.HTTPError as error:
            logger.debug("the stream of events was lost: %s", error)
        self.ended = True
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


def _message(data: str) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(data, by_name=False))
    except ValueError:
        logger.warning("an event that is not a message is skipped: %r", data[:200])
        return None


class MessagePoster(MessageStream):
    """Posts each message in the task of whoever sends it, so that its failure is that call's alone."""

    def __init__(self, client: httpx2.AsyncClient, endpoint: httpx2.URL) -> None:
        """Post to *endpoint*."""
        self._client = client
        self._endpoint = endpoint

    async def send(self, item: SessionMessage, /) -> None:
        if self.closed:
            raise anyio.ClosedResourceError
        message: Any = item.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        try:
            response = await self._client.post(self._endpoint, json=message)
        except (httpx2.HTTPError, Refused) as error:
            refusal = ErrorData(code=CONNECTION_CLOSED, message=failure_words(error))
        else:
            if response.is_success:
                return
            refusal = error_message(response) or ErrorData(
                code=INTERNAL_ERROR, message=f"it answered HTTP {response.status_code}"
            )
        if isinstance(item.message, JSONRPCRequest):
            raise MCPError.from_error_data(refusal)
        logger.debug("a message was lost: %s", refusal.message)
