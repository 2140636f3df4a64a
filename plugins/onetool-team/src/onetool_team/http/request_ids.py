"""RequestIds: the outermost layer over HTTP, which names every request for its logs, traces, audit and reply."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from onetool_team.http.asgi import REQUEST_ID, AsgiApp, Message, Receive, Scope, Send, all_headers
from ot.logs import current_request

HEADER = b"x-request-id"
ACCEPTED = re.compile(rb"[A-Za-z0-9._:=+/@-]{1,128}")
"""Every form that balancers use, and nothing that could break a line of a log."""

type NoteStatus = Callable[[int], None]
"""Takes the status of every answer; must be quick and must not raise."""


class RequestIds:
    """Keeps the id that a client or balancer sent, or makes one, and returns it with the answer."""

    def __init__(self, app: AsgiApp, note_status: NoteStatus | None = None) -> None:
        """Pass requests on to *app*, and tell *note_status* how each was answered."""
        self._app = app
        self._note_status = note_status

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request under its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = scope[REQUEST_ID] = request_id(scope)

        async def name_answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._name_answer(message, request)
            await send(message)

        token = current_request.set(request)
        try:
            await self._app(scope, receive, name_answer)
        finally:
            current_request.reset(token)

    def _name_answer(self, message: Message, request: str) -> None:
        others = [(name, value) for name, value in message.get("headers", ()) if name.lower() != HEADER]
        message["headers"] = [*others, (HEADER, request.encode())]
        if self._note_status:
            self._note_status(message["status"])


def request_id(scope: Scope) -> str:
    """Return the one well-formed id that the request was sent with, or a new one."""
    given = all_headers(scope, HEADER)
    if len(given) == 1 and ACCEPTED.fullmatch(given[0]):
        return given[0].decode("ascii")
    return secrets.token_hex(16)
