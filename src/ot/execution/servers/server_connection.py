"""ServerConnection: one proxied server; it is connected when it is needed, and again when it was lost."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from ot.errors import ServerUnavailable, ToolBusy, ToolError
from ot.execution.servers.call_trace import CallTrace
from ot.execution.servers.client_roots import ClientRoots
from ot.execution.servers.connect_failure import failure_words
from ot.execution.servers.server_backoff import ServerBackoff
from ot.execution.servers.server_noise import ServerNoise
from ot.execution.servers.server_spec import ServerSpec
from ot.execution.servers.server_start import ServerStart
from ot.registry.server_definitions import ServerDefinitions

if TYPE_CHECKING:
    from fastmcp import Client

    from ot.execution.servers.live_session import LiveSession

logger = logging.getLogger(__name__)

State = Literal["idle", "starting", "connected", "failed"]
Work = Callable[["Client[Any]"], Awaitable[Any]]

MAX_WAITING = 256
ENDING_SECONDS = 1.0
LEAVE_SECONDS = 5.0
RELIST_SECONDS = 0.5
"""How often a list is fetched at most, however often a server says that it is new."""


class ServerConnection:
    """A server's state, its one connection, and the calls that wait for it."""

    def __init__(
        self,
        spec: ServerSpec,
        changed: Callable[[str, ServerDefinitions], None],
        backoff: ServerBackoff | None = None,
        roots: ClientRoots | None = None,
    ) -> None:
        """Connect nothing yet; *changed* gets what the server offers whenever it was listed."""
        self.spec = spec
        self.state: State = "idle"
        self.why = ""
        self.since = time.time()
        self.definitions: ServerDefinitions | None = None
        self.noise = ServerNoise(spec.name)
        self.last_used = time.monotonic()
        self.in_flight = 0
        self.closing = False
        self._changed = changed
        self._backoff = backoff or ServerBackoff()
        self._live: LiveSession | None = None
        self._starting: asyncio.Task[LiveSession] | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._stale = False
        self._start = ServerStart(spec, self.noise, self._on_change, self._task, self._later, roots or ClientRoots())
        self._places = asyncio.Semaphore(spec.concurrency)
        self._idle = asyncio.Event()
        self._idle.set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._leaving: set[asyncio.Task[Any]] = set()

    # ---------------------------------------------------------------- calls

    async def use(self, tool: str, trace: CallTrace, work: Work) -> Any:
        """Return what *work* gets of the connected server.

        Nothing that may have reached the server is ever sent again; what surely did not is sent once more, over a
        connection of its own.

        Raises:
            ServerUnavailable: It is not connected, or the connection was lost.
            ToolError: It answered with an error.
        """
        if self.in_flight >= self.spec.concurrency + MAX_WAITING:
            raise ToolBusy(tool, f"{self.in_flight} calls are waiting for the server '{self.spec.name}'")
        self.in_flight += 1
        self._idle.clear()
        try:
            async with self._places:
                return await self._tried(tool, trace, work)
        finally:
            self.in_flight -= 1
            self.last_used = time.monotonic()
            if not self.in_flight:
                self._idle.set()

    async def _tried(self, tool: str, trace: CallTrace, work: Work) -> Any:
        from ot.execution.servers.call_failure import Lost, call_failure  # noqa: PLC0415 - needs the protocol's library

        lost = Lost("")
        for _ in range(2):
            live = await self.ready()
            trace.sent, trace.taken, trace.status = False, False, 0
            try:
                answer = await live.ask(trace, work)
            except Exception as error:  # noqa: BLE001 - the server's, the network's or the library's doing
                failure = call_failure(await live.cause(error), tool, trace, live)
                if isinstance(failure, ToolError):
                    raise failure from None
                lost = Lost(await self._lose(live, failure.why), failure.sent)
            else:
                self._backoff.worked()
                return answer
            if lost.sent:
                break
        pause = self._backoff.seconds_left
        raise ServerUnavailable(self.spec.name, lost.why, retry_seconds=pause, unknown=lost.sent)

    def _unavailable(self) -> ServerUnavailable:
        return ServerUnavailable(self.spec.name, self.why, retry_seconds=self._backoff.seconds_left)

    # ---------------------------------------------------------------- connecting

    async def ready(self) -> LiveSession:
        """Return the connection, made now if need be; who wants it at the same time shares the start.

        Raises:
            ServerUnavailable: It cannot be connected, or it failed a moment ago and is not tried again yet.
        """
        if self._live is not None:
            if not self._live.over:
                return self._live
            await self._lose(self._live, "the connection was lost")
        if self.closing:
            raise ServerUnavailable(self.spec.name, "its settings have changed, or OneTool is ending")
        if self.spec.problem:
            self._set("failed", self.spec.problem)
            raise self._unavailable()
        if self._starting is None:
            if self._backoff.seconds_left:
                raise self._unavailable()
            self._starting = self._task(self._started())
            self._starting.add_done_callback(self._start_over)
        return await self._shared(self._starting)

    async def _shared(self, starting: asyncio.Task[LiveSession]) -> LiveSession:
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if starting.cancelled() and not (task and task.cancelling()):
                # It was the start that was called off, not this call.
                raise ServerUnavailable(self.spec.name, "its settings have changed, or OneTool is ending") from None
            raise

    def _start_over(self, started: asyncio.Task[LiveSession]) -> None:
        self._starting = None

    async def _started(self) -> LiveSession:
        self._set("starting")
        self._stale = False
        seconds = self.spec.start_seconds
        try:
            async with asyncio.timeout(seconds):
                live = await self._start.connected()
        except TimeoutError:
            said = f". It said: {self.noise.said}" if self.noise.said else ""
            self._refuse(f"it did not start within {seconds:g} s{said}")
        except asyncio.CancelledError:
            self._set("idle")
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse(failure_words(error) or type(error).__name__)
        else:
            self._live = live
            self._take(live.listed)
            self.last_used = time.monotonic()
            self._set("connected")
            if live.process:
                self._task(self._watch(live))
            if self._stale:  # the server said so while it was being listed
                self._on_change()
            return live
        raise self._unavailable()

    def _refuse(self, why: str) -> None:
        self._backoff.refused()
        self._set("failed", self._with_noise(why))
        logger.warning("the server %s is not available: %s", self.spec.name, self.why)

    # ---------------------------------------------------------------- losing

    async def _watch(self, live: LiveSession) -> None:
        """Take note when the process ends, also when nobody calls."""
        assert live.process
        await live.process.ended.wait()
        await self._lose(live, "")

    async def _lose(self, live: LiveSession, why: str) -> str:
        """Let go of a connection that is of no more use, and return why it was lost."""
        if self._live is not live:
            return live.lost or why
        self._live = None
        self._backoff.failed()
        self._set("failed", why)
        self._later(live.retire())
        if live.process and live.over:
            with suppress(TimeoutError):  # how it ended is known a moment after that it did
                await asyncio.wait_for(live.process.ended.wait(), ENDING_SECONDS)
            why = live.process.ending_words
        live.lost = self._with_noise(why)
        logger.warning("the server %s was lost: %s", self.spec.name, live.lost)
        if self.state == "failed":  # it may have been started again meanwhile
            self._set("failed", live.lost)
        return live.lost

    def _with_noise(self, why: str) -> str:
        return why + (f". {self.noise.text}" if self.noise.count else "")

    async def leave(self) -> None:
        """Let go of the connection: the server is idle."""
        starting, live, self._live = self._starting, self._live, None
        if starting:
            starting.cancel()
            # Only when it has ended is it known what it leaves to be cleaned up.
            await asyncio.wait((starting,), timeout=LEAVE_SECONDS)
        if live:
            self._set("idle")
            await live.close()
        if self._leaving:
            await asyncio.wait(list(self._leaving), timeout=LEAVE_SECONDS)

    async def leave_unused(self) -> None:
        """Let go of the connection unless a call has come meanwhile."""
        if not self.in_flight:
            await self.leave()

    async def aclose(self, drain: float = 0.0) -> None:
        """Take no more calls, wait at most *drain* seconds for those under way, then let go."""
        self.closing = True
        if drain and self.in_flight:
            waiting = self._task(self._idle.wait())
            await asyncio.wait((waiting,), timeout=drain)
            waiting.cancel()
        if self._relisting:
            self._relisting.cancel()
        await self.leave()

    def forgive(self) -> None:
        """Let the next call try again at once."""
        self._backoff.worked()

    # ---------------------------------------------------------------- lists

    async def listed(self) -> ServerDefinitions:
        """Return what the server offers, connecting it if need be.

        Raises:
            ServerUnavailable: It cannot be connected.
        """
        await self.ready()
        self.last_used = time.monotonic()
        if self.definitions is None:
            raise self._unavailable()
        return self.definitions

    def _on_change(self) -> None:
        self._stale = True
        if self._relisting is None or self._relisting.done():
            self._relisting = self._task(self._relist())

    async def _relist(self) -> None:
        while self._stale and self._live is not None:
            await asyncio.sleep(RELIST_SECONDS)
            self._stale, live = False, self._live
            try:
                self._take(await asyncio.wait_for(live.definitions(), self.spec.start_seconds))
            except Exception as error:  # noqa: BLE001 - the old list stays, and the next connection brings a new one
                logger.warning("the new list of the server %s was not read: %s", self.spec.name, failure_words(error))

    def _take(self, definitions: ServerDefinitions) -> None:
        self.definitions = definitions
        self._changed(self.spec.name, definitions)

    # ---------------------------------------------------------------- small things

    def _set(self, state: State, why: str = "") -> None:
        if (state, why) != (self.state, self.why):
            self.state, self.why, self.since = state, why, time.time()

    def _task(self, work: Any) -> asyncio.Task[Any]:
        # A context of its own: what the run that came first carries with it must not stay for those that follow.
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Nobody may be left to take the error when all who waited were cancelled.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    def _later(self, work: Any) -> None:
        task = self._task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)
