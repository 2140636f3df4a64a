"""AnsweredRequests: no failure below leaves a request unanswered."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus

from onetool_team.http.answers import send_failure
from onetool_team.http.asgi import REQUEST_ID, AsgiApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

BROKEN = "the server failed to answer; nothing is known of what the request did. Its operator finds it in the log"
STOPPED = "the server stopped before the request was answered; nothing is known of what the request did"


class AnsweredRequests:
    """Answers where the layers below end without an answer."""

    def __init__(self, app: AsgiApp) -> None:
        """Pass requests on to *app*."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, whatever happens below."""
        started = False

        async def note_start(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, note_start)
        except asyncio.CancelledError:
            if started:
                raise
            # The server is ending and cuts off what is left: it waits for this answer, so the cancellation may end.
            # Never 503: balancers send such a request to another replica, and this one may have begun.
            await send_failure(scope, send, HTTPStatus.GATEWAY_TIMEOUT, STOPPED, begun=True)
        except Exception:
            logger.exception("request %s failed", scope[REQUEST_ID])
            if started:
                raise
            await send_failure(scope, send, HTTPStatus.INTERNAL_SERVER_ERROR, BROKEN, begun=True)
