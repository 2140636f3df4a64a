"""RunEntrance: once a server is to end it lets no run in, and says so in a way that balancers understand."""

from __future__ import annotations

from http import HTTPStatus

from onetool_team.http.answers import failure, send_json
from onetool_team.http.asgi import REQUEST_ID, AsgiApp, Receive, Scope, Send
from onetool_team.http.buffered_request import BufferedRequest, read_request
from ot.server.drain import Drain

ENDING = "the server is shutting down and starts nothing new; nothing has run. Send it again, to another replica if any"
ENDING_KEY = "onetool.ending"
"""Where a request's ASGI scope holds the event that the end has begun."""


class RunEntrance:
    """Lets requests in; whoever is in when the end begins is served."""

    def __init__(self, app: AsgiApp, drain: Drain) -> None:
        """Let requests in to *app* until *drain* begins."""
        self._app = app
        self._drain = drain

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say that nothing begins any more."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
        elif self._drain.begun.is_set():
            await self._answer_late(scope, receive, send)
        else:
            scope[ENDING_KEY] = self._drain.begun
            with self._drain.enter():
                await self._app(scope, receive, send)

    async def _answer_late(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await read_request(scope, receive, send)
        if request is None:
            return
        if request.is_run and not request.goes_on:
            await refuse_unbegun(scope, send, request, ENDING, 1)
        else:
            await self._app(scope, request.receive, send)


async def refuse_unbegun(
    scope: Scope,
    send: Send,
    request: BufferedRequest,
    why: str,
    seconds: int,
    status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE,
) -> None:
    """Answer that nothing of a run was begun here, and *why*; it may be sent to another replica, or after *seconds*."""
    body = failure(why, status, scope.get(REQUEST_ID, ""))
    body["id"] = request.id
    body["error"]["data"]["retry_after_seconds"] = seconds
    headers = [(b"retry-after", str(seconds).encode())]
    await send_json(send, status, body, headers)
