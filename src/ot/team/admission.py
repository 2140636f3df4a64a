"""Admission: every run waits for its turn before anything of it is done; who sends too many is told when to go on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import orjson

from ot.config.team_settings import Quotas
from ot.team.fair_queue import FairQueue, NoTurn
from ot.team.http.answers import failure, send_json
from ot.team.http.asgi import REQUEST_ID, AsgiApp, Message, Receive, Scope, Send
from ot.team.identity import SCOPE_KEY, Identity
from ot.team.people import TeamFront
from ot.team.rate_window import RateWindow
from ot.workspace import Workspace

RUN = "tools/call"
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
NOT_JSON = (
    "the request's body is not JSON in UTF-8: {why}. NaN, Infinity and numbers beyond a float are not JSON either"
)
NOT_ONE = "the request's body must be one JSON object. Send several requests one by one"
REFUSAL_SECONDS = 1.0
"""How long a refusal takes: whoever does not wait by itself is slowed down, and costs the others nothing."""
TOO_MANY = (
    "you have begun {most} runs within a minute, as many as this server allows one user (http.quotas.runs_per_minute). "
    "Send the run again in {seconds} s; several steps fit into one program"
)


class NotARequest(Exception):
    """The body is not one JSON-RPC message."""

    def __init__(self, message: str, code: int) -> None:
        """Say what is wrong; *code* is JSON-RPC's."""
        super().__init__(message)
        self.code = code


class Admission:
    """Holds tool calls until there is room for them; everything else passes."""

    def __init__(
        self,
        app: AsgiApp,
        queue: FairQueue,
        window: RateWindow,
        quotas: Callable[[], Quotas],
        refusal_seconds: float = REFUSAL_SECONDS,
    ) -> None:
        """Pass what is admitted to *app*; a refusal takes *refusal_seconds*."""
        self._app = app
        self._queue = queue
        self._window = window
        self._quotas = quotas
        self._refusal_seconds = refusal_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, once it is the request's turn."""
        identity = scope.get(SCOPE_KEY)
        if scope["type"] != "http" or scope["method"] != "POST" or not isinstance(identity, Identity):
            await self._app(scope, receive, send)
            return
        request = BufferedRequest(receive)
        try:
            if not await request.read():
                return
        except NotARequest as wrong:
            await _refuse_body(scope, send, wrong)
            return
        if not request.is_run:
            await self._app(scope, request.receive, send)
            return
        await self._admit(identity.principal, scope, request, send)

    async def _admit(self, principal: str, scope: Scope, request: BufferedRequest, send: Send) -> None:
        try:
            if not await self._entered(principal, request):
                return
        except NoTurn as refused:
            request.close()
            await asyncio.sleep(self._refusal_seconds)
            await _refuse(scope, send, request, refused)
            return
        try:
            await self._app(scope, request.receive, send)
        finally:
            self._queue.leave(principal)
            request.close()

    async def _entered(self, principal: str, request: BufferedRequest) -> bool:
        """Return when it is the request's turn, or that its sender has left.

        Raises:
            NoTurn: It is never going to be.
        """
        quotas = self._quotas()
        if seconds := await self._window.seconds_to_wait(principal, quotas):
            raise NoTurn(TOO_MANY.format(most=quotas.runs_per_minute, seconds=math.ceil(seconds)), seconds)
        if self._queue.try_enter(principal):
            return True
        entering = asyncio.ensure_future(self._queue.enter(principal))
        try:
            await asyncio.wait((entering, request.ending()), return_when=asyncio.FIRST_COMPLETED)
            if entering.done():
                entering.result()
                return True
        except asyncio.CancelledError:
            if entering.done() and not entering.cancelled() and not entering.exception():
                self._queue.leave(principal)
            raise
        finally:
            entering.cancel()
        return False


def admitting(front: TeamFront, window: RateWindow, queue: FairQueue | None = None) -> Callable[[AsgiApp], AsgiApp]:
    """Return what puts an application behind the quotas of *front*'s configuration, whatever they are by then."""

    def around(app: AsgiApp) -> AsgiApp:
        return Admission(app, queue or open_queue(front), window, lambda: front.settings.quotas)

    return around


def open_queue(front: TeamFront) -> FairQueue:
    """Return the queue of whoever sends runs to *front*."""
    return FairQueue(lambda: front.settings.quotas, lambda: engine_places(front.workspace))


def engine_places(workspace: Workspace) -> int:
    """Return how many programs may run at the same time."""
    engines = workspace.picture.loaded.config.engines
    return engines.portable.processes if workspace.engine.name == "portable" else engines.exact.processes


class BufferedRequest:
    """A request whose body has been read, and is read once more by whoever answers it."""

    def __init__(self, receive: Receive) -> None:
        """Read from *receive*."""
        self._receive = receive
        self._body: bytes | None = b""
        self._request: dict[str, Any] = {}
        self._ending: asyncio.Task[Message] | None = None

    async def read(self) -> bool:
        """Read the body, and return whether it came whole.

        The libraries that answer have parsers of their own, which take more than JSON: other encodings, NaN, half
        characters. A body passes only if it is strict JSON, which all of them read alike, so none runs uncounted.

        Raises:
            NotARequest: It is not one JSON object in UTF-8.
        """
        parts: list[bytes] = []
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                return False
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        self._body = b"".join(parts)
        try:
            content = orjson.loads(self._body)
        except orjson.JSONDecodeError as error:
            raise NotARequest(NOT_JSON.format(why=error), PARSE_ERROR) from None
        if not isinstance(content, dict):
            raise NotARequest(NOT_ONE, INVALID_REQUEST)
        self._request = cast("dict[str, Any]", content)
        return True

    @property
    def is_run(self) -> bool:
        """Whether it calls a tool."""
        return self._request.get("method") == RUN

    @property
    def id(self) -> Any:
        """The id that an answer must have."""
        found = self._request.get("id")
        return found if isinstance(found, str | int) else None

    def ending(self) -> asyncio.Task[Message]:
        """Return what ends when the sender leaves."""
        if self._ending is None:

            async def wait_for_end() -> Message:
                return await self._receive()

            self._ending = asyncio.ensure_future(wait_for_end())
        return self._ending

    def close(self) -> None:
        """Listen no more."""
        if self._ending is not None:
            self._ending.cancel()

    async def receive(self) -> Message:
        """Return the body, and after it what comes."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        if self._ending is not None:
            return await asyncio.shield(self._ending)
        return await self._receive()


async def _refuse(scope: Scope, send: Send, request: BufferedRequest, refused: NoTurn) -> None:
    seconds = max(1, math.ceil(refused.seconds))
    body = failure(str(refused), HTTPStatus.TOO_MANY_REQUESTS, scope.get(REQUEST_ID, ""))
    body["id"] = request.id
    body["error"]["data"]["retry_after_seconds"] = seconds
    headers = [(b"retry-after", str(seconds).encode())]
    await send_json(send, HTTPStatus.TOO_MANY_REQUESTS, body, headers)


async def _refuse_body(scope: Scope, send: Send, wrong: NotARequest) -> None:
    body = failure(str(wrong), HTTPStatus.BAD_REQUEST, scope.get(REQUEST_ID, ""))
    body["error"]["code"] = wrong.code
    await send_json(send, HTTPStatus.BAD_REQUEST, body)
