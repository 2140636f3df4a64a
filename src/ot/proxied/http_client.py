"""ServerClient: the HTTP client of one connection; what goes wrong with a request is told to its call alone."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import httpx2
import orjson
from mcp_types import CONNECTION_CLOSED, INVALID_REQUEST

from ot.proxied.call_trace import CallTrace, current_trace
from ot.proxied.failure_words import failure_words, status_words
from ot.proxied.guarded_client import GuardedClient
from ot.proxied.http_replies import BoundedBody, error_message, pause_asked, refuse_redirect, rpc_error, usable_reply
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.reply_faults import Refused, UnusableReply
from ot.proxied.spec import ServerSpec

logger = logging.getLogger(__name__)

READ_SECONDS = 300.0
IDLE_SECONDS = 4.0
"""Uvicorn and Node close idle connections after 5 s: what is written at that moment is lost, its effect unknown."""
PROBE = "server/discover"
"""Whatever answers it decides on the protocol, and an outage must not."""
OUTAGES = frozenset({429, 502, 503, 504})
EFFECTS = frozenset({"tools/call"})
"""Methods that may change something; all others can be repeated."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
type Watch = Callable[[str, Any], Awaitable[None]]
"""What the library calls with each step of a request."""
QUICK_RESUMPTIONS = 5
RESUMPTION_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Posted:
    """What a POST says: a request has a method and an id, an answer or a notification lacks one of them."""

    method: str = ""
    id: Any = None

    @classmethod
    def of(cls, request: httpx2.Request) -> _Posted:
        with suppress(ValueError, httpx2.StreamError):
            message: Any = orjson.loads(request.content)
            if isinstance(message, dict):
                said = cast("dict[str, Any]", message)
                return cls(str(said.get("method", "")), said.get("id"))
        return cls()

    @property
    def is_request(self) -> bool:
        return bool(self.method) and self.id is not None


class ServerClient(GuardedClient):
    """Sends the headers of its spec and no others, notes how far each request got, and waits where it is asked to.

    Proxies are those of the environment, as the library reads it.
    """

    def __init__(self, spec: ServerSpec, auth: httpx2.Auth | None = None, *, answers_apart: bool = False) -> None:
        """Reach the address of *spec*; *auth* signs the requests; *answers_apart* come over another stream.

        Raises:
            Refused: The environment names a proxy or certificates that cannot be used.
        """
        self._server = spec.name
        self._start_seconds = spec.start_seconds
        self._answers_apart = answers_apart
        super().__init__(
            AddressRule(*spec.rule),
            auth=auth,
            headers=dict(spec.headers),
            timeout=httpx2.Timeout(spec.start_seconds, read=max(READ_SECONDS, (spec.call_seconds or 0) + 5)),
            limits=httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=IDLE_SECONDS),
        )

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the response; a POST that has none gets an error of the protocol in its place."""
        posted = _Posted.of(request) if request.method == "POST" else _Posted()
        trace = current_trace.get()
        request.extensions = {**request.extensions, "trace": _watch(posted, trace)}
        if request.method != "POST":
            await _wait_to_resume(request, trace)
            return await self._send_bounded(request, options)
        if trace and posted.is_request:
            trace.status, trace.replied, trace.fault = 0, False, None
        try:
            return await self._answer(request, posted, trace, options)
        except httpx2.StreamError as error:  # too large: an answer all the same, though an unreadable one
            return rpc_error(request, posted.id, INVALID_REQUEST, str(error))
        except Exception as error:
            if trace and posted.is_request:
                trace.fault = error
            if self._answers_apart:
                raise
            return _instead(request, posted, error)

    async def _send_bounded(self, request: httpx2.Request, options: dict[str, Any]) -> httpx2.Response:
        streamed: dict[str, Any] = {**options, "stream": True}
        response = await super().send(request, **streamed)
        response.stream = BoundedBody(response, None if self._answers_apart else current_trace.get())
        try:
            refuse_redirect(response)
            if not options.get("stream"):
                await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _answer(
        self, request: httpx2.Request, posted: _Posted, trace: CallTrace | None, options: dict[str, Any]
    ) -> httpx2.Response:
        response = await self._send_when_let_in(request, posted, trace, options)
        if not posted.is_request or response.next_request is not None:
            return response
        try:
            if response.is_success:
                if trace:
                    trace.answers += 1
                return response if self._answers_apart else await usable_reply(request, response, posted.id)
            await self._note_refusal(response, posted, trace)
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _send_when_let_in(
        self, request: httpx2.Request, posted: _Posted, trace: CallTrace | None, options: dict[str, Any]
    ) -> httpx2.Response:
        """Return the response once the server lets the request in; it is sent again only if it had no effect."""
        attempt = 0
        while True:
            response = await self._send_bounded(request, options)
            pause = pause_asked(response)
            # Who answers 429 has not let the request in. A 503 may also come from a gateway that had passed it on.
            repeatable = response.status_code == 429 or (response.status_code == 503 and posted.method not in EFFECTS)
            if pause is None or not repeatable:
                return response
            await response.aclose()
            # Who asks for no pause at all, again and again, is not asked in a hurry.
            pause = max(pause, min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE)) if attempt else pause
            left = self._seconds_left(trace)
            if pause >= left or (trace and trace.elsewhere):
                told = f"it answered HTTP {response.status_code} and asks to be left alone for {pause:g} s"
                longer = ", longer than the call may still take: call it again after that" if pause >= left else ""
                raise Refused(f"{told}{longer}", retry_seconds=pause)
            if trace:
                trace.sent = False
            await asyncio.sleep(pause)
            attempt += 1

    def _seconds_left(self, trace: CallTrace | None) -> float:
        context = trace.context if trace else None
        return context.deadline - time.monotonic() if context else self._start_seconds

    async def _note_refusal(self, response: httpx2.Response, posted: _Posted, trace: CallTrace | None) -> None:
        await response.aread()
        status = response.status_code
        replied = error_message(response) is not None
        if posted.method == PROBE and status in OUTAGES and not replied:
            raise Refused(status_words(status, self._server), retry_seconds=pause_asked(response) or 0)
        if trace:
            trace.status, trace.replied = status, replied


def _watch(posted: _Posted, trace: CallTrace | None) -> Watch:
    """Return a hook that records that a request is on its way."""

    async def note(event: str, details: Any) -> None:
        # The request to a proxy for a tunnel carries nothing of the call.
        is_head = event.endswith(".send_request_headers.started") and details["request"].method != b"CONNECT"
        if is_head and trace and posted.is_request:
            trace.sent = True

    return note


async def _wait_to_resume(request: httpx2.Request, trace: CallTrace | None) -> None:
    """Hold up whoever asks for the rest of an answer again and again, and stop it when nobody waits any more."""
    if trace is None or "last-event-id" not in request.headers:
        return
    if trace.over:
        raise httpx2.StreamError("the request was cancelled")
    trace.resumed += 1
    if trace.resumed > QUICK_RESUMPTIONS:
        await asyncio.sleep(RESUMPTION_SECONDS)


def _instead(request: httpx2.Request, posted: _Posted, error: Exception) -> httpx2.Response:
    """Return a stand-in for the missing response: an exception here would end the whole connection."""
    if not posted.is_request:
        logger.debug("a message to %s was lost: %s", request.url.host, failure_words(error))
        return httpx2.Response(202, request=request)
    if posted.method == PROBE and not isinstance(error, UnusableReply):
        raise error
    return rpc_error(request, posted.id, CONNECTION_CLOSED, failure_words(error))
