"""Request ids: every request has one, its answer names it, and no failure below leaves a request unanswered."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from http import HTTPStatus

from ot.team.http.answers import send_failure
from ot.team.http.asgi import REQUEST_ID, AsgiApp, Message, Receive, Scope, Send, header

logger = logging.getLogger(__name__)

GIVEN = re.compile(rb"[A-Za-z0-9._-]{1,64}\Z")
BROKEN = "the server failed to answer; nothing is known of what the request did. Its operator finds it in the log"
STOPPED = "the server stopped before the request was answered. Send it again, to another replica if there is one"


class RequestIds:
    """The outermost layer: it names each request, and answers where the layers below end without an answer."""

    def __init__(self, app: AsgiApp) -> None:
        """Pass requests on to *app*."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, whatever happens below."""
        given = header(scope, b"x-request-id")
        name = given if given and GIVEN.match(given) else secrets.token_hex(8).encode()
        scope[REQUEST_ID] = name.decode()
        started = False

        async def send_named(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", name)]
            await send(message)

        try:
            await self._app(scope, receive, send_named)
        except asyncio.CancelledError:
            if started:
                raise
            # The server is ending and cuts off what is left: it waits for this answer, so the cancellation may end.
            await send_failure(scope, send_named, HTTPStatus.SERVICE_UNAVAILABLE, STOPPED, [(b"retry-after", b"1")])
        except Exception:
            logger.exception("request %s failed", scope[REQUEST_ID])
            if started:
                raise
            await send_failure(scope, send_named, HTTPStatus.INTERNAL_SERVER_ERROR, BROKEN)
