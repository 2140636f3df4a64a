"""Admission: every run waits for its turn before anything of it is done; who sends too many is told when to go on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from http import HTTPStatus

from onetool_team.fair_queue import FairQueue, NoTurn
from onetool_team.http.asgi import AsgiApp, Receive, Scope, Send
from onetool_team.http.buffered_request import BufferedRequest, read_request
from onetool_team.http.run_entrance import ENDING, ENDING_KEY, refuse_unbegun
from onetool_team.identity import SCOPE_KEY, Identity
from onetool_team.people import NotOpened, TeamFront, may_run
from onetool_team.rate_window import RateWindow
from onetool_team.settings import Quotas
from ot.workspace import Workspace

REFUSAL_SECONDS = 1.0
"""How long a refusal takes: whoever does not wait by itself is slowed down, and costs the others nothing."""
TOO_MANY = (
    "you have begun {most} runs within a minute, as many as this server allows one user (http.quotas.runs_per_minute). "
    "Send the run again in {seconds} s; several steps fit into one program"
)


class NothingBegins(Exception):
    """The server lets no run begin any more."""


class Admission:
    """Holds tool calls until there is room for them; everything else passes."""

    def __init__(
        self,
        app: AsgiApp,
        queue: FairQueue,
        window: RateWindow,
        quotas: Callable[[], Quotas],
        refusal_seconds: float = REFUSAL_SECONDS,
        enter: Callable[[str], AbstractAsyncContextManager[object]] = nullcontext,
    ) -> None:
        """Pass what is admitted to *app*; a refusal takes *refusal_seconds*.

        *enter* opens what a principal's run needs, before anything of it is done: where that fails, another replica
        may take the run.
        """
        self._app = app
        self._queue = queue
        self._window = window
        self._quotas = quotas
        self._refusal_seconds = refusal_seconds
        self._enter = enter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, once it is the request's turn."""
        identity = scope.get(SCOPE_KEY)
        if scope["type"] != "http" or scope["method"] != "POST" or not isinstance(identity, Identity):
            await self._app(scope, receive, send)
            return
        request = await read_request(scope, receive, send)
        if request is None:
            return
        if not request.is_run or not may_run(identity):
            await self._app(scope, request.receive, send)
            return
        await self._admit(identity, scope, request, send)

    async def _admit(self, identity: Identity, scope: Scope, request: BufferedRequest, send: Send) -> None:
        principal, quotas = identity.principal, self._quotas().of(identity.groups)
        try:
            if not await self._entered(principal, quotas, request, scope.get(ENDING_KEY) or asyncio.Event()):
                return
        except NothingBegins:
            request.close()
            await refuse_unbegun(scope, send, request, ENDING, 1)
            return
        except NoTurn as refused:
            request.close()
            await asyncio.sleep(self._refusal_seconds)
            seconds = max(1, math.ceil(refused.seconds))
            await refuse_unbegun(scope, send, request, str(refused), seconds, HTTPStatus.TOO_MANY_REQUESTS)
            return
        try:
            async with AsyncExitStack() as stack:
                try:
                    await stack.enter_async_context(self._enter(principal))
                except NotOpened as refused:
                    await refuse_unbegun(scope, send, request, str(refused), refused.seconds)
                    return
                await self._app(scope, request.receive, send)
        finally:
            self._queue.leave(principal)
            request.close()

    async def _entered(self, principal: str, quotas: Quotas, request: BufferedRequest, ending: asyncio.Event) -> bool:
        """Return when it is the request's turn, or that its sender has left.

        Raises:
            NoTurn: It is never going to be.
            NothingBegins: The server lets no run begin any more.
        """
        if seconds := await self._window.seconds_to_wait(principal, quotas):
            raise NoTurn(TOO_MANY.format(most=quotas.runs_per_minute, seconds=math.ceil(seconds)), seconds)
        if self._queue.try_enter(principal, quotas):
            return True
        entering, ends = (
            asyncio.ensure_future(self._queue.enter(principal, quotas)),
            asyncio.ensure_future(ending.wait()),
        )
        try:
            await asyncio.wait((entering, ends, request.ending()), return_when=asyncio.FIRST_COMPLETED)
            if entering.done():
                entering.result()
                return True
            if ends.done():
                raise NothingBegins
        except asyncio.CancelledError:
            if entering.done() and not entering.cancelled() and not entering.exception():
                self._queue.leave(principal)
            raise
        finally:
            entering.cancel()
            ends.cancel()
        return False


def admitting(front: TeamFront, window: RateWindow, queue: FairQueue | None = None) -> Callable[[AsgiApp], AsgiApp]:
    """Return what puts an application behind the quotas of *front*'s configuration, whatever they are by then."""

    def around(app: AsgiApp) -> AsgiApp:
        return Admission(app, queue or open_queue(front), window, lambda: front.settings.quotas, enter=front.enter)

    return around


def open_queue(front: TeamFront) -> FairQueue:
    """Return the queue of whoever sends runs to *front*."""
    return FairQueue(lambda: front.settings.quotas, lambda: engine_places(front.workspace))


def engine_places(workspace: Workspace) -> int:
    """Return how many programs may run at the same time."""
    engines = workspace.picture.loaded.config.engines
    return engines.portable.processes if workspace.engine.name == "portable" else engines.exact.processes
