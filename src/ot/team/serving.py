"""Serves MCP over HTTP, from the first connection to an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ot.config.team_settings import Http
from ot.errors import EngineUnavailable, OneToolError
from ot.server.connection import START_SECONDS
from ot.server.drain import CUT_OFF_SECONDS, Drain
from ot.server.mcp_server import build_server, count_listed_chars
from ot.server.parked_runs import MOST, MOST_OF_TEAM, ParkedRuns
from ot.server.serve import Watchdog, end_on_signal
from ot.server.streamable_http import StreamableHttp
from ot.team.http.app import MCP_PATH, Edge
from ot.team.http.health import Readiness
from ot.team.http.listen_address import url_of
from ot.team.http.open_requests import OpenRequests
from ot.team.http.request_ids import RequestIds
from ot.team.http.warm_up import warm_up
from ot.team.http.web_server import LAST_SECONDS, WebServer
from ot.team.people import TeamFront
from ot.team.team_parts import TeamParts
from ot.team.telemetry.open_telemetry import TeamTelemetry, open_telemetry
from ot.version import installed_version

logger = logging.getLogger(__name__)

ENDING = "it was asked to end"


@dataclass(frozen=True)
class Listening:
    """Where the server is, and the file of its token if it made one."""

    url: str
    token: str = ""
    token_file: Path | None = None


async def serve_http(
    parts: TeamParts, listening: socket.socket, tell: Callable[[Listening], None], packs: Sequence[str] = ()
) -> None:
    """Serve *parts* until a signal asks for the end; *tell* is told where, as soon as it listens.

    Raises:
        UnknownPack: One of *packs* does not exist.
    """
    service = HttpService(parts)
    try:
        service.watch()
        await service.open(packs)
        made = parts.token
        tell(Listening(url_of(listening, MCP_PATH), made.token if made else "", made.file if made else None))
        await service.serve(listening)
    finally:
        listening.close()
        await service.aclose()


class HttpService:
    """The MCP server behind its edge, and its way from start to end."""

    def __init__(self, parts: TeamParts) -> None:
        """Serve *parts*."""
        self._parts = parts
        workspace = self._workspace = parts.front.workspace
        self._settings: Http = parts.settings
        self._readiness = Readiness()
        self._readiness.shared = parts.shared.state if parts.shared else None
        self._drain = Drain(lambda: workspace.picture.loaded.config.limits.drain_seconds)
        self._watchdog = Watchdog()
        self._telemetry: TeamTelemetry | None = None
        self._parked = ParkedRuns(MOST_OF_TEAM if parts.shared else MOST)

    def watch(self) -> None:
        """Open what the settings say about traces, metrics and audit.

        Raises:
            ConfigError: Some of it cannot be opened.
        """
        loaded, host = self._workspace.picture.loaded, self._workspace.host
        self._telemetry = open_telemetry(loaded.config, loaded.secrets)
        self._workspace.watch(self._telemetry.watchers)
        self._telemetry.watch(host)
        for name, text, read in self._figures():
            self._telemetry.show(name, text, read)

    def _figures(self) -> list[tuple[str, str, Callable[[], int]]]:
        """Return what only the server over HTTP knows."""
        parts, parked = self._parts, self._parked
        figures: list[tuple[str, str, Callable[[], int]]] = [
            ("runs_parked", "Runs that wait for an answer of their users", lambda: len(parked)),
        ]
        if (queue := parts.queue) is not None:
            figures.append(("runs_waiting", "Runs that wait for their turn", lambda: queue.waiting))
        if isinstance(front := parts.front, TeamFront):
            figures.append(("workspaces_open", "Workspaces that are open", lambda: len(front)))
        if parts.shared and (state := parts.shared.state).replicas:
            up = "1 while what replicas share can be reached"
            figures.append(("shared_state_up", up, lambda: int(not state.trouble)))
        return figures

    async def open(self, packs: Sequence[str]) -> None:
        """Choose the engine and build the server; with *packs*, it offers nothing but their tools.

        Raises:
            UnknownPack: One of them does not exist.
        """
        workspace = self._workspace
        workspace.spawn_engine()
        try:
            engine = await workspace.choose_engine()
        except EngineUnavailable as error:
            engine = workspace.engine.name
            self._readiness.stop("failed", str(error))
            logger.error("not ready: %s", error)
        await workspace.definitions_of(packs)  # an unknown pack ends the start, not a later call
        server = build_server(
            self._parts.front,
            installed_version(),
            engine,
            drain=self._drain,
            packs=packs,
            shared=self._parts.shared,
            parked=self._parked,
        )
        workspace.definition_chars = await count_listed_chars(server)
        self._mcp = StreamableHttp(server, self._settings.body_bytes)

    async def serve(self, listening: socket.socket) -> None:
        """Answer until a signal asks for the end, and every open request has its answer."""
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        web = WebServer(self._settings)
        parts = self._parts
        edge = Edge(
            self._settings,
            parts.authenticator,
            self._readiness,
            web.count_answering,
            parts.challenge,
            admission=parts.admission,
            routes=parts.routes,
        )
        if self._telemetry:
            edge = replace(edge, naming=partial(RequestIds, note_status=self._telemetry.count_answer))
            self._telemetry.show("http_connections", "Connections that are open", web.open_connections)
        requests = OpenRequests(edge.around(self._mcp), lambda: self._readiness.state == "draining")
        async with self._mcp.running():
            serving = asyncio.ensure_future(web.answer(requests, listening))
            serving.add_done_callback(lambda _: stop.cancel())
            starting = asyncio.ensure_future(self._start())
            end_on_signal(stop, self._drain_runs, self._watchdog.end_now)
            with contextlib.suppress(asyncio.CancelledError):
                await stop
            await self._end(requests)
            web.should_exit = True
            await serving
            await requests.all_answered(LAST_SECONDS)
            # Cut off while it starts, an engine could not be closed, and its threads would outlive the interpreter.
            await asyncio.wait((starting,), timeout=START_SECONDS)

    async def _start(self) -> None:
        """Start the engine, do what the first request would have to, and be ready."""
        if self._readiness.state == "failed":
            return
        try:
            await self._workspace.start()
            self._parts.start()
            await warm_up(self._mcp)
            health = await self._workspace.engine.health()
        except OneToolError as error:
            self._readiness.stop("failed", str(error))
            logger.error("not ready: %s", error)
            return
        why = str(health.details.get("exact_engine", health.status)) if health.status != "ok" else ""
        self._readiness.ready(health.name, why)
        logger.info("ready: programs run in the %s engine%s", health.name, f", degraded: {why}" if why else "")

    async def _drain_runs(self) -> None:
        """Return when every open run is over: by itself, or because its time was."""
        self._readiness.stop("draining", ENDING)
        await asyncio.sleep(self._settings.notice_seconds)
        seconds = self._drain.begin()
        logger.info("asked to end: open runs have %g s", seconds)
        await self._drain.all_over(seconds)

    async def _end(self, requests: OpenRequests) -> None:
        """Stop what still runs, and wait until everyone was told."""
        self._readiness.stop("draining", ENDING)
        self._drain.begin()
        self._drain.cut_off()
        await requests.all_answered(CUT_OFF_SECONDS)

    async def aclose(self) -> None:
        """Let go of everything."""
        await self._parts.aclose()
        if self._telemetry:
            await self._telemetry.aclose()
        self._watchdog.release()
