"""HttpTransport: a server at an address."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from fastmcp.client.transports.base import ClientTransport, SessionKwargs, TransportOptions
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from ot.execution.message_parts import MARKS, has_many_parts
from ot.execution.servers.bounded_message import MOST_BYTES, MOST_PARTS
from ot.execution.servers.call_trace import current_trace
from ot.execution.servers.passing_session import PassingSession
from ot.execution.servers.server_spec import ServerSpec

MAX_REPLY_BYTES = MOST_BYTES
EVENTS = "text/event-stream"
READ_SECONDS = 300.0


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
            PassingSession(*streams, **kwargs) as session,
        ):
            yield session

    def _client(self) -> httpx2.AsyncClient:
        read = max(READ_SECONDS, (self._spec.call_seconds or 0) + 5)
        return httpx2.AsyncClient(
            headers=dict(self._spec.headers),
            timeout=httpx2.Timeout(self._spec.start_seconds, read=read),
            event_hooks={"request": [_on_request], "response": [_on_response]},
        )


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
        suspicious = MOST_PARTS
        async for chunk in self._stream:
            if self._events and (b"\n\n" in chunk or b"\r\n\r\n" in chunk):
                held, size, marks, suspicious = [], 0, 0, MOST_PARTS
            held.append(chunk)
            size += len(chunk)
            marks += sum(chunk.count(mark) for mark in MARKS)
            if size > MAX_REPLY_BYTES and not self._events:  # an event's size is the library's to bound
                raise httpx2.StreamError(f"the reply is larger than {MAX_REPLY_BYTES:,} bytes")
            if marks > suspicious:  # unless most of them stand in texts
                suspicious = 2 * marks
                if has_many_parts(b"".join(held), MOST_PARTS):
                    raise httpx2.StreamError(f"the reply holds more than {MOST_PARTS:,} parts")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
