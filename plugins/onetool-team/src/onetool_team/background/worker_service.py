"""WorkerService: one ``onetool worker`` process, from its start to an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from onetool_team.background.worker_parts import WorkerParts
from onetool_team.http.health import CONFIG_VALID, Readiness, healthz
from onetool_team.http.listen_address import url_of
from onetool_team.http.routes import Route, Routes
from onetool_team.http.web_server import WebServer
from onetool_team.operating.desk import watching_people
from onetool_team.settings import Http
from onetool_team.telemetry.open_telemetry import TeamTelemetry, open_telemetry
from ot.background.carrying_out import RunCarrier
from ot.errors import OneToolError
from ot.server.drain import CUT_OFF_SECONDS
from ot.server.serve import Watchdog, end_on_signal

logger = logging.getLogger(__name__)

ENDING = "it was asked to end"


@dataclass(frozen=True, slots=True)
class Working:
    """What a worker does, for whoever started it."""

    name: str
    at_once: int
    engine: str
    probes: str = ""
    """Where /healthz and /readyz are answered."""


async def serve_runs(parts: WorkerParts, probes: socket.socket | None, tell: Callable[[Working], None]) -> None:
    """Carry out background runs until a signal asks for the end; *tell* is told once it is ready."""
    service = WorkerService(parts, probes)
    try:
        service.watch()
        await service.serve(tell)
    finally:
        if probes:
            probes.close()
        await service.aclose()


class WorkerService:
    """The worker, its probes and its telemetry."""

    def __init__(self, parts: WorkerParts, probes: socket.socket | None) -> None:
        """Work with *parts*; answer probes on the socket *probes*."""
        self._parts = parts
        self._probes = probes
        self._workspace = parts.team.front.workspace
        self._readiness = Readiness(parts.team.shared.state, parts.team.front.configuration)
        self._watchdog = Watchdog()
        self._telemetry: TeamTelemetry | None = None
        self._worker = parts.worker

    def watch(self) -> None:
        """Open what the settings say about traces, metrics and audit.

        Raises:
            ConfigError: Some of it cannot be opened.
        """
        loaded, worker = self._workspace.picture.loaded, self._worker
        telemetry = self._telemetry = open_telemetry(loaded.config, loaded.secrets, redact=self._parts.redact)
        self._workspace.watch(watching_people(telemetry.watchers, self._parts.team.roster))
        telemetry.figures.watch(self._workspace.host)
        telemetry.figures.add(
            "background_runs_running", "Background runs that this worker carries out", lambda: worker.running
        )
        configuration = self._parts.team.front.configuration
        telemetry.figures.add("config_valid", CONFIG_VALID, lambda: int(not configuration.trouble))
        telemetry.figures.add(
            "background_runs_waiting", "Background runs that no worker has taken", lambda: worker.waiting
        )

    async def serve(self, tell: Callable[[Working], None]) -> None:
        """Carry out runs until a signal asks for the end.

        Raises:
            OneToolError: The engine cannot be started.
        """
        web = WebServer(self._workspace.picture.loaded.config.section(Http))
        answering = asyncio.ensure_future(web.answer(self._routes(), self._probes)) if self._probes else None
        carrier = RunCarrier(self._parts.book, self._parts.team.front.enter)
        try:
            engine = await self._start()
            background = self._workspace.picture.loaded.config.background
            working = asyncio.ensure_future(self._worker.work(partial(self._carry_out, carrier), background.at_once))
            probes = url_of(self._probes, "") if self._probes else ""
            tell(Working(self._worker.name, background.at_once, engine, probes))
            await self._until_the_end(working)
        finally:
            await carrier.aclose()
            web.should_exit = True
            if answering:
                await answering

    async def _carry_out(self, carrier: RunCarrier, id: str) -> None:
        """Carry out one run; whose it was is noted at once, for an operator may be waiting to forget that person."""
        try:
            await carrier.carry_out(id)
        finally:
            await self._parts.team.roster.flush()

    def _routes(self) -> Routes:
        return Routes({"/healthz": Route(healthz), "/readyz": Route(self._readiness)})

    async def _start(self) -> str:
        """Start the engine and return its name."""
        workspace = self._workspace
        workspace.spawn_engine()
        try:
            engine = await workspace.choose_engine()
            await workspace.start()
        except OneToolError as error:
            self._readiness.stop("failed", str(error))
            raise
        self._parts.team.front.start()
        self._parts.team.roster.start()
        self._readiness.ready(engine)
        logger.info("ready: background runs are carried out in the %s engine", engine)
        return engine

    async def _until_the_end(self, working: asyncio.Future[None]) -> None:
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        working.add_done_callback(lambda _: stop.cancel())
        end_on_signal(stop, lambda: self._drain(working), self._watchdog.end_now)
        with contextlib.suppress(asyncio.CancelledError):
            await stop
        self._readiness.stop("draining", ENDING)
        # Those that are left are taken up by other workers: what they have sent is in the ledger.
        while not working.done():
            working.cancel()
            await asyncio.wait((working,), timeout=CUT_OFF_SECONDS)
        if not working.cancelled():
            working.result()

    async def _drain(self, working: asyncio.Future[None]) -> None:
        """Take no more runs, and return when those under way have ended or their time is over."""
        self._readiness.stop("draining", ENDING)
        seconds = self._workspace.picture.loaded.config.limits.drain_seconds
        logger.info("asked to end: runs under way have %g s", seconds)
        working.cancel()
        await asyncio.wait((working,), timeout=seconds)

    async def aclose(self) -> None:
        """Let go of everything."""
        await self._parts.team.aclose()
        if self._telemetry:
            await self._telemetry.aclose()
        self._watchdog.release()
