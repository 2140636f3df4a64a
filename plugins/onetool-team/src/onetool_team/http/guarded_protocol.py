"""The protocol of one connection: uvicorn's, which also bounds what comes before a request is whole."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast, override

import orjson
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from onetool_team.http.answers import failure
from onetool_team.http.connections import Connections
from onetool_team.http.request_limits import HEAD_BYTES, LARGE_HEAD

PIPELINED = 8
"""Requests that may wait on a connection for the one before: nobody sends them who does not mean harm."""
SLOW = "the request did not arrive within http.request_seconds ({seconds:g} s)"
MALFORMED = "the request is not well-formed HTTP/1.1, or its parts contradict each other"


class NotTaken(Exception):
    """The request is refused while it is read; the connection ends with it."""


class GuardedProtocol(HttpToolsProtocol):
    """Ends connections whose requests come too slowly, are too large at the head, or are too many at once."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        seconds: float,
        crowd: Connections,
    ) -> None:
        """Give each request *seconds* to arrive; *crowd* closes connections where there are too many."""
        super().__init__(config, server_state, app_state, _loop)
        self._seconds = seconds
        self._crowd = crowd
        self._arriving: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        """Of a head that has begun and is not whole yet."""
        self._in_head = False
        self._in_body = False

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._start_clock()
        self._crowd.enter(self, self.client[0] if self.client else "")

    @property
    def is_arriving(self) -> bool:
        """Whether its first request, or one that has begun, is not whole yet."""
        return self._arriving is not None

    def abort(self) -> None:
        """Close the connection at once."""
        self.transport.abort()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        self._crowd.leave(self)
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        """Read on, as long as the head stays small; the clock of a further request starts with its first byte."""
        if self.transport.is_closing():
            return
        if not self._in_body and not self.pipeline:
            self._start_clock()
        super().data_received(data)
        # A head that is whole is measured where its parts are known.
        self._head_bytes = self._head_bytes + len(data) if self._in_head else 0
        if self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._end(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, LARGE_HEAD)

    @override
    def on_message_begin(self) -> None:
        """Expect a head."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    @override
    def on_headers_complete(self) -> None:
        """Start the request, unless too many wait, or its address names another host than its header."""
        self._in_head, self._in_body = False, True
        if len(self.pipeline) >= PIPELINED or not self.url.startswith((b"/", b"*")):
            raise NotTaken
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        """Stop the clock: the request is whole."""
        super().on_message_complete()
        self._in_body = False
        self._stop_clock()
        if not self.cycle.response_complete:  # else it was refused before it had arrived
            self._crowd.hear(self)

    @override
    def on_response_complete(self) -> None:
        """Go on with a request that waited; its body has its own time, which begins now."""
        super().on_response_complete()
        if self._in_body and not self.transport.is_closing():
            self._start_clock()
        if self._in_body or self.cycle.response_complete:
            self._crowd.wait(self)

    @override
    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be read."""
        self._end(HTTPStatus.BAD_REQUEST, MALFORMED)

    def _start_clock(self) -> None:
        if self._arriving is None:
            self._arriving = self.loop.call_later(self._seconds, self._too_slow)

    def _stop_clock(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None

    def _too_slow(self) -> None:
        self._arriving = None
        if not (self._in_head or self._in_body):  # it was opened and never used
            self.transport.close()
        else:
            self._end(HTTPStatus.REQUEST_TIMEOUT, SLOW.format(seconds=self._seconds))

    def _end(self, status: HTTPStatus, message: str) -> None:
        """End the connection, with an answer if none has begun."""
        self._stop_clock()
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is None or cycle.response_complete or not cycle.response_started:
            self.transport.write(_raw(status, message))
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.close()


def _raw(status: HTTPStatus, message: str) -> bytes:
    body = orjson.dumps(failure(message, status))
    head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
    return STATUS_LINE[status] + head + body
