"""LoopbackCallback: the address on this machine that the browser is sent back to."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType

from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.browser_return import CallbackAnswer, Invitation

HOST = "127.0.0.1"
PATH = "/callback"
REQUEST_SECONDS = 10.0
MAX_LINE = 16_384
DONE = "You are logged in. You can close this page."
SAID_NO = "The login was not granted. You can close this page."
OTHER = "This page belongs to no login that is under way. Start the login again."
PAGE = (
    "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n"
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n\r\n{text}"
)


class LoopbackCallback:
    """Listens on 127.0.0.1 while it is entered; takes one answer for the state that is waited for."""

    def __init__(self, account: ServerAccount, seconds: float) -> None:
        """Listen on the port of *account*; wait for no longer than *seconds*."""
        self.account = account
        self._seconds = seconds
        self._server: asyncio.Server | None = None
        self._state = ""
        self._answer: asyncio.Future[CallbackAnswer] | None = None

    async def __aenter__(self) -> LoopbackCallback:
        """Begin to listen; raise OSError if the port is taken."""
        self._answer = asyncio.get_running_loop().create_future()
        self._server = await asyncio.start_server(self._handle_visit, HOST, self.account.port, limit=MAX_LINE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        if self._answer:
            self._answer.cancel()
        if self._server:
            self._server.close()
            await self._server.wait_closed()

    async def invite(self, address: str) -> Invitation:
        """Take the answer to *address* from now on: a browser may be back before the client says that it left."""
        self.expect(CallbackAnswer.from_address(address).state)
        return Invitation(address)

    def expect(self, state: str) -> None:
        """Take the answer for *state* from now on, also before anybody waits for it."""
        self._state = state

    async def receive(self, state: str) -> CallbackAnswer:
        """Return the answer for *state*; others are refused, and so is a second one.

        Raises:
            TimeoutError: None came in time.
        """
        assert self._answer is not None
        self.expect(state)
        return await asyncio.wait_for(asyncio.shield(self._answer), self._seconds)

    async def _handle_visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._page(head.split(b"\r\n", 1)[0].decode("latin-1"))
                page = PAGE.format(status=status, length=len(text), text=text)
                writer.write(page.encode())
                await writer.drain()
        writer.close()

    def _page(self, line: str) -> tuple[str, str]:
        """Return the answer to a request, and take the one that is waited for."""
        method, _, rest = line.partition(" ")
        target = rest.partition(" ")[0]
        if method != "GET" or target.partition("?")[0] != PATH:
            return "404 Not Found", OTHER
        answer = CallbackAnswer.from_address(target)
        if not self._is_awaited(answer):
            return "400 Bad Request", OTHER
        assert self._answer is not None
        self._answer.set_result(answer)
        return "200 OK", SAID_NO if answer.error else DONE

    def _is_awaited(self, answer: CallbackAnswer) -> bool:
        if self._answer is None or self._answer.done() or not answer.is_complete:
            return False
        return bool(self._state) and answer.state == self._state
