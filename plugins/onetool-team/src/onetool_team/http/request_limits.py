"""Request limits: how large a request may be, and how many are answered at a time."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from onetool_team.http.answers import send_failure
from onetool_team.http.asgi import AsgiApp, Message, Receive, Scope, Send, header
from onetool_team.settings import Http

HEAD_BYTES = 32 << 10
"""What the first line and all headers may take together: tokens of a few KiB fit."""
HEADERS = 100
LARGE_HEAD = f"the request's address and headers are larger than {HEAD_BYTES:,} bytes, or more than {HEADERS} headers"
LARGE_BODY = "the request's body is larger than http.body_bytes ({bytes:,} bytes). Send less, or raise the setting"
LATER = [(b"retry-after", b"1"), (b"connection", b"close")]
BUSY = "the server is answering as many requests as http.connections allows ({connections:,}). Try again later"


class BodyTooLarge(Exception):
    """More came than a body may have."""


class SenderGone(Exception):
    """Whoever sends the request left before it was whole."""


class RequestLimits:
    """Refuses what is too large, whether or not it says so beforehand."""

    def __init__(self, app: AsgiApp, settings: Http, answered: Callable[[], int]) -> None:
        """Keep to *settings*; *answered* says how many connections have a request that is being answered."""
        self._app = app
        self._most = settings.body_bytes
        self._most_connections = settings.connections
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say which limit the request is beyond."""
        if self._answered() > self._most_connections:
            busy = BUSY.format(connections=self._most_connections)
            await send_failure(scope, send, HTTPStatus.SERVICE_UNAVAILABLE, busy, LATER)
        elif _is_head_large(scope):
            await send_failure(scope, send, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, LARGE_HEAD)
        elif _read_length(scope) > self._most:
            await self._refuse_body(scope, send)
        else:
            try:
                await self._app(scope, self._count(receive), send)
            except BodyTooLarge:
                await self._refuse_body(scope, send)
            except SenderGone:
                return  # nobody waits for an answer

    async def _refuse_body(self, scope: Scope, send: Send) -> None:
        message = LARGE_BODY.format(bytes=self._most)
        await send_failure(scope, send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)

    def _count(self, receive: Receive) -> Receive:
        left, is_whole = self._most, False

        async def count() -> Message:
            nonlocal left, is_whole
            message = await receive()
            if message["type"] != "http.request":
                if not is_whole:
                    raise SenderGone
                return message
            is_whole = not message.get("more_body", False)
            left -= len(message.get("body", b""))
            if left < 0:
                raise BodyTooLarge
            return message

        return count


def _read_length(scope: Scope) -> int:
    given = header(scope, b"content-length") or b"0"
    return int(given) if given.isdigit() else 0


def _is_head_large(scope: Scope) -> bool:
    headers = scope["headers"]
    size = (
        len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(key) + len(value) + 4 for key, value in headers)
    )
    return len(headers) > HEADERS or size > HEAD_BYTES
