"""WorkerService: one ``onetool worker`` process, from its start to an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass

from ot.background.carrying_out import RunCarrier
from ot.errors import OneToolError
from ot.server.drain import CUT_OFF_SECONDS
from ot.server.serve import Watchdog, end_on_signal
from ot.team.background.run_worker import RunWorker
from ot.team.background.worker_parts import WorkerParts
from ot.team.http.health import Readiness, healthz
from ot.team.http.listen_address import url_of
from ot.team.http.routes import Route, Routes
from ot.team.http.web_server import WebServer
from ot.team.telemetry.open_telemetry import TeamTelemetry, open_telemetry

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
        self._readiness = Readiness()
        self._readiness.shared = parts.team.shared.state
        self._watchdog = Watchdog()
        self._telemetry: TeamTelemetry | None = None
        self._worker: RunWorker = parts.worker

    def watch(self) -> None:
        """Open what the settings say about traces, metrics and audit.

        Raises:
            ConfigError: Some of it cannot be opened.
        """
        loaded, worker = self._workspace.picture.loaded, self._worker
        telemetry = self._telemetry = open_telemetry(loaded.config, loaded.secrets)
        self._workspace.watch(telemetry.watchers)
        telemetry.watch(self._workspace.host)
        telemetry.show(
            "background_runs_running", "Background runs that this worker carries out", lambda: worker.running
        )
        telemetry.show("background_runs_waiting", "Background runs that no worker has taken", lambda: worker.waiting)

    async def serve(self, tell: Callable[[Working], None]) -> None:
        """Carry out runs until a signal asks for the end.

        Raises:
            OneToolError: The engine cannot be started.
        """
        web = WebServer(self._workspace.picture.loaded.config.http)
        answering = asyncio.ensure_future(web.answer(self._routes(), self._probes)) if self._probes else None
        carrier = RunCarrier(self._parts.book, self._parts.team.front.enter)
        try:
            engine = await self._start()
            background = self._workspace.picture.loaded.config.background
            working = asyncio.ensure_future(self._worker.work(carrier.carry_out, background.at_once))
            probes = url_of(self._probes, "") if self._probes else ""
            tell(Working(self._worker.name, background.at_once, engine, probes))
            await self._until_the_end(working)
        finally:
            await carrier.aclose()
            web.should_exit = True
            if answering:
                await answering

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
        await self._parts.aclose()
        if self._telemetry:
            await self._telemetry.aclose()
        self._watchdog.release()
