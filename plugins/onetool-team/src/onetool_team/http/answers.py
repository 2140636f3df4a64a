"""Answers that we give ourselves: a failure says what it is and what to do about it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson

from onetool_team.http.asgi import REQUEST_ID, AsgiApp, Headers, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

CODE = -32000
"""JSON-RPC's code for an error of the server's own kind: MCP clients show the message of such a body."""
BROKEN = "the server failed to answer; nothing is known of what the request did. Its operator finds it in the log"
STOPPED = "the server stopped before the request was answered; nothing is known of what the request did"


async def send_json(send: Send, status: int, content: Mapping[str, Any], headers: Headers | None = None) -> None:
    """Answer with *content*."""
    body = orjson.dumps(content)
    length = (b"content-length", str(len(body)).encode())
    sent = [(b"content-type", b"application/json"), length, (b"cache-control", b"no-store"), *(headers or [])]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": body})


async def send_failure(
    scope: Scope, send: Send, status: HTTPStatus, message: str, headers: Headers | None = None, *, begun: bool = False
) -> None:
    """Answer that the request failed; *message* says what is wrong and what to do, *begun* that some of it was done."""
    await send_json(send, status, failure(message, status, scope.get(REQUEST_ID, ""), begun=begun), headers)


def failure(message: str, status: HTTPStatus, request_id: str = "", *, begun: bool = False) -> dict[str, Any]:
    """Return the body of a failure: a JSON-RPC error, which MCP clients read at any status."""
    # A request that was not begun may be sent to another host.
    data: dict[str, Any] = {"status": status.value, "error": status.phrase, "begun": begun}
    data |= {"request_id": request_id} if request_id else {}
    return {"jsonrpc": "2.0", "id": None, "error": {"code": CODE, "message": message, "data": data}}


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
