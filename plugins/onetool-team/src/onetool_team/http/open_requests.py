"""Open requests: how many are being answered, so that an end can wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from onetool_team.http.asgi import AsgiApp, Message, Receive, Scope, Send

CLOSE = (b"connection", b"close")


class OpenRequests:
    """Counts the requests that are being answered; those of a server that ends are the last on their connection."""

    def __init__(self, app: AsgiApp, ending: Callable[[], bool]) -> None:
        """Count for *app*; *ending* says whether the server wants no further requests."""
        self._app = app
        self._ending = ending
        self._open = 0
        self._none = asyncio.Event()
        self._none.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer."""

        async def send_last(message: Message) -> None:
            if message["type"] == "http.response.start" and self._ending():
                kept = [pair for pair in message.get("headers", ()) if pair[0] != CLOSE[0]]
                message["headers"] = [*kept, CLOSE]
            await send(message)

        self._open += 1
        self._none.clear()
        try:
            await self._app(scope, receive, send_last)
        finally:
            self._open -= 1
            if not self._open:
                self._none.set()

    async def all_answered(self, seconds: float) -> None:
        """Return once every request has its answer, or after *seconds*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._none.wait()
