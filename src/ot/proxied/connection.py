"""ServerConnection: one proxied server; it is connected when it is needed, and again when it was lost."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ot.errors import AuthServerDown, LoginNeeded, ServerUnavailable, ToolError, redact_error
from ot.processes.backoff import Backoff
from ot.processes.pool import MAX_WAITING, Leased
from ot.proxied.asking_servers import Asks
from ot.proxied.call_trace import CallTrace
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.failure_words import failure_words, pause_asked_for
from ot.proxied.failures import Lost, call_failure, start_failure
from ot.proxied.hosts import on_a_host
from ot.proxied.messages import StrayOutput
from ot.proxied.place import ClientRoots
from ot.proxied.session import LiveSession
from ot.proxied.spec import ServerSpec
from ot.registry.announced_tool import form_of, revision_of

if TYPE_CHECKING:
    from fastmcp import Client

logger = logging.getLogger(__name__)

State = Literal["idle", "starting", "connected", "failed", "login needed"]
Work = Callable[["Client[Any]"], Awaitable[Any]]

ENDING_SECONDS = 1.0
DISCONNECT_SECONDS = 5.0
RELIST_SECONDS = 0.5
"""How often a list is fetched at most, however often a server says that it is new."""


class ServerConnection(Leased):
    """A server's state, its one connection, and the calls that wait for it."""

    def __init__(
        self,
        spec: ServerSpec,
        changed: Callable[[ServerSpec, ServerDefinitions], None],
        backoff: Backoff,
        roots: ClientRoots,
        asks: Asks = lambda: True,
    ) -> None:
        """Connect nothing yet; *changed* gets what the server offers whenever it was listed.

        *asks* hears when the server asks its client something.
        """
        super().__init__(spec.key, spec.idle_seconds, spec.concurrency, spec.concurrency + MAX_WAITING)
        self.held_as = spec.held_as or spec.key
        self.spec = spec
        self.state: State = "idle"
        self.why = ""
        self.since = time.time()
        self.definitions: ServerDefinitions | None = None
        self._tools: Mapping[str, Mapping[str, Any]] = {}
        self._revision = self._wanted_revision = ""
        self._stray = StrayOutput(spec.name, self._redact)
        self._changed = changed
        self._backoff = backoff
        self._roots = roots
        self._asks = asks
        # The older transport knows the older protocol alone.
        self._mode = "legacy" if spec.transport == "sse" else "auto"
        self._spec_found = spec
        """As it is reached, once that was found out."""
        self._live: LiveSession | None = None
        self._starting: asyncio.Task[LiveSession] | None = None
        self._relisting: asyncio.Task[None] | None = None
        self._stale = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ending: set[asyncio.Task[Any]] = set()

    # ---------------------------------------------------------------- calls

    async def use(self, tool: str, trace: CallTrace, work: Work) -> Any:
        """Return the result of *work* on the connected server.

        A request that may have reached the server is never sent again; one that surely did not is sent again, over a
        connection of its own.

        Raises:
            ServerUnavailable: It is not connected, or the connection was lost.
            ToolError: It answered with an error.
        """
        async with self.lease(tool, f"the server '{self.spec.name}'"):
            return await self._try_twice(tool, trace, work)

    @property
    def rests(self) -> bool:
        """Whether it failed a moment ago, or asked to be left alone."""
        return self._backoff.seconds_left > 0

    def rest(self, seconds: float) -> None:
        """Let others be asked first for *seconds*."""
        self._backoff.hold(seconds)

    async def _try_twice(self, tool: str, trace: CallTrace, work: Work) -> Any:
        lost = Lost("")
        for _ in range(2):
            live = await self.ready()
            trace.begin()
            try:
                answer = await live.ask(trace, work)
            except Exception as error:  # noqa: BLE001 - the server's, the network's or the library's doing
                failure = call_failure(error, tool, trace, live)
                if isinstance(failure, ToolError):
                    raise failure from None
                lost = Lost(await self._lose(live, failure.why), failure.sent)
            else:
                self._backoff.note_success()
                if trace.refusal:  # an API's own answer, which only says that it failed
                    raise trace.refusal
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
        if self._starting is None:
            if self._backoff.seconds_left:
                raise self._unavailable()
            self._starting = self._task(self._start())
            self._starting.add_done_callback(self._on_start)
        return await self._await_shared_start(self._starting)

    async def _await_shared_start(self, starting: asyncio.Task[LiveSession]) -> LiveSession:
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if starting.cancelled() and not (task and task.cancelling()):
                # It was the start that was called off, not this call.
                raise ServerUnavailable(self.spec.name, "its settings have changed, or OneTool is ending") from None
            raise

    def _on_start(self, started: asyncio.Task[LiveSession]) -> None:
        self._starting = None

    async def _start(self) -> LiveSession:
        self._set("starting")
        self._stale = False
        seconds = self.spec.start_seconds
        try:
            async with asyncio.timeout(seconds):
                live = await self._connect()
        except TimeoutError:
            said = f". It said: {self._stray.said}" if self._stray.said else ""
            self._refuse(f"it did not start within {seconds:g} s{said}")
        except asyncio.CancelledError:
            self._set("idle")
            raise
        except ServerUnavailable as error:
            redact_error(error, self._redact)
            # Its login is the trouble: a person can end that at any moment, so the next call tries at once.
            if isinstance(error, LoginNeeded):
                self.need_login(str(error))
            else:
                self._set("failed", error.why)
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self._refuse(failure_words(error, self._redact) or type(error).__name__, pause_asked_for(error))
        else:
            self._live = live
            self.last_used = time.monotonic()
            self._set("connected")
            if live.process:
                self._task(self._watch(live))
            if self._stale:  # the server said so while it was being listed
                self._on_change()
            return live
        raise self._unavailable()

    def _refuse(self, why: str, pause: float = 0.0) -> None:
        self._backoff.note_failure(is_start=True)
        self._backoff.hold(pause)
        self._set("failed", self._with_stray(why))
        logger.warning("the server %s is not available: %s", self.spec.name, self.why)

    async def _connect(self) -> LiveSession:
        """Return a connection whose server said what it offers; the caller sets the time for it.

        Raises:
            RuntimeError: The server is unavailable; the text says why.
            ServerUnavailable: Its login is of no use.
        """
        live = await self._open(self._mode, self._spec_found)
        if not live.modern:
            self._mode = "legacy"  # asking for the newer protocol again would only cost time
        trace = CallTrace()
        try:
            definitions = await live.ask(trace, lambda _: live.definitions())
        except BaseException as error:
            self._later(live.end())
            if not isinstance(error, Exception):
                raise
            raise start_failure(live, trace, error) from trace.fault or error
        self._take(definitions)
        return live

    async def _open(self, mode: str, spec: ServerSpec) -> LiveSession:
        live = LiveSession(spec, self._stray, self._on_change, mode, self._roots, self._asks)
        # In its own task: the library's cleaning up after a deadline must not delay the deadline.
        opening = self._task(live.open())
        try:
            await asyncio.shield(opening)
        except BaseException as error:
            opening.cancel()
            self._later(live.end())
            if not isinstance(error, Exception):
                raise
            if mode == "auto" and live.process and live.process.ended.is_set():
                # Some servers of the older protocol exit when the first message is not the one that they know.
                return await self._open("legacy", spec)
            failed = start_failure(live, live.trace, error)
            if live.may_speak_sse and not live.trace.refusal and (older := await self._open_over_events()):
                return older
            raise failed from live.trace.fault or error
        return live

    async def _open_over_events(self) -> LiveSession | None:
        """Return a connection over the older transport, or nothing when the server does not speak that either."""
        spec = replace(self.spec, transport="sse")
        try:
            live = await self._open("legacy", spec)
        except RuntimeError as error:
            logger.debug("%s does not offer a stream of events either: %s", spec.name, error)
            return None
        self._spec_found = spec
        return live

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
        self._backoff.note_failure()
        self._set("failed", why)
        self._later(live.retire())
        if live.process and live.over:
            with suppress(TimeoutError):  # how it ended is known a moment after that it did
                await asyncio.wait_for(live.process.ended.wait(), ENDING_SECONDS)
            why = live.process.ending_words
        live.lost = self._redact(self._with_stray(why))
        logger.warning("the server %s was lost: %s", self.spec.name, live.lost)
        if self.state == "failed":  # it may have been started again meanwhile
            self._set("failed", live.lost)
        return live.lost

    def _with_stray(self, why: str) -> str:
        return why + (f". {self._stray.text}" if self._stray.count else "")

    async def disconnect(self) -> None:
        """Let go of the connection: the server is idle."""
        starting, live, self._live = self._starting, self._live, None
        if starting:
            starting.cancel()
            # Only when it has ended is it known what it leaves to be cleaned up.
            await asyncio.wait((starting,), timeout=DISCONNECT_SECONDS)
        if live:
            self._set("idle")
            await live.end()
        if self._ending:
            await asyncio.wait(list(self._ending), timeout=DISCONNECT_SECONDS)

    def is_idle(self, now: float) -> bool:
        """Return whether it has been connected for its time without a call."""
        return self.state == "connected" and super().is_idle(now)

    async def disconnect_unused(self) -> None:
        """Let go of the connection unless a call has come meanwhile."""
        if not self.in_flight:
            await self.disconnect()

    async def end(self) -> None:
        """Take no more calls, and let go of everything."""
        self.closing = True
        if self._relisting:
            self._relisting.cancel()
        await self.disconnect()

    # ---------------------------------------------------------------- lists

    async def read_definitions(self) -> ServerDefinitions:
        """Return the server's definitions, connecting it if need be; raise ServerUnavailable if that fails."""
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
                why = failure_words(error, self._redact)
                logger.warning("the new list of the server %s was not read: %s", self.spec.name, why)

    def _take(self, definitions: ServerDefinitions) -> None:
        self.definitions = definitions
        # By name: a call must not cost more where there are more tools.
        self._tools = {str(tool.get("name")): tool for tool in definitions.tools}
        told = ((str(tool.get("description") or ""), form_of(tool) or {}) for tool in definitions.tools)
        self._revision = revision_of(told) if any(map(form_of, definitions.tools)) else ""
        self._changed(self.spec, definitions)

    def note_revision(self, revision: str) -> None:
        """Fetch the lists anew when a pack over there is of another *revision* than what it listed."""
        if revision in ("", self._revision, self._wanted_revision):
            return
        self._wanted_revision = revision
        self._on_change()

    def definition(self, tool: str) -> Mapping[str, Any]:
        """Return the server's latest definition of that tool, if any."""
        return self._tools.get(tool, {})

    # ---------------------------------------------------------------- small things

    def need_login(self, why: str) -> None:
        """Take note that its user has to log in, and *why*, with what to do."""
        self._set("login needed", why)

    def health(self) -> dict[str, Any]:
        """Return the server's health: state, why, since, tools, noise."""
        tools = len(self.definitions.tools) if self.definitions else None
        return {"state": self.state, "why": self.why, "since": self.since, "tools": tools, "noise": self._stray.text}

    def _redact(self, text: str) -> str:
        return self.spec.redactor().text(text)

    def _set(self, state: State, why: str = "") -> None:
        why = self._redact(why)
        if (state, why) != (self.state, self.why):
            self.state, self.why, self.since = state, why, time.time()

    def _task(self, work: Any) -> asyncio.Task[Any]:
        # In its own context: the first run's context variables must not stay for later ones.
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        # Nobody may be left to take the error when all who waited were cancelled.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task

    def _later(self, work: Any) -> None:
        task = self._task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def probe(spec: ServerSpec) -> ServerDefinitions:
    """Return the server's definitions, over one connection; its process has ended when this returns.

    Raises:
        ServerUnavailable: It cannot be started, reached, or does not answer within ``spec.start_seconds``.
    """
    if spec.problem:
        raise ServerUnavailable(spec.name, spec.problem)
    hosts = [ServerConnection(host, lambda spec, definitions: None, Backoff(), ClientRoots()) for host in spec.hosts]
    try:
        return await on_a_host(hosts, lambda connection, _: connection.read_definitions())
    except (LoginNeeded, AuthServerDown):
        raise
    except ServerUnavailable as error:
        # Nothing is tried again, so that is not said either.
        raise ServerUnavailable(spec.name, error.why) from None
    finally:
        for connection in hosts:
            await connection.end()
