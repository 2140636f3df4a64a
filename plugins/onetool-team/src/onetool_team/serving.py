"""Serves MCP over HTTP, from the first connection to an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from onetool_team.auth.resource_metadata import challenge
from onetool_team.http.app import MCP_PATH, Edge
from onetool_team.http.health import CONFIG_VALID, Readiness
from onetool_team.http.listen_address import url_of
from onetool_team.http.open_requests import OpenRequests
from onetool_team.http.request_ids import RequestIds
from onetool_team.http.streamable_http import StreamableHttp
from onetool_team.http.web_server import LAST_SECONDS, WebServer
from onetool_team.operating.desk import watching_people
from onetool_team.operating.replicas import answering_here
from onetool_team.packs.pack_tools import PackTools
from onetool_team.replica_runs import ReplicaRuns
from onetool_team.settings import Http
from onetool_team.state.shared_home import SharedHome
from onetool_team.team_parts import TeamParts
from onetool_team.telemetry.open_telemetry import TeamTelemetry, open_telemetry
from onetool_team.warm_up import warm_up
from ot.errors import EngineUnavailable, OneToolError
from ot.server.connection import START_SECONDS
from ot.server.drain import CUT_OFF_SECONDS, Drain
from ot.server.mcp_server import build_server, count_listed_chars
from ot.server.parked_runs import MOST, ParkedRuns
from ot.server.serve import Watchdog, end_on_signal
from ot.version import installed_version

logger = logging.getLogger(__name__)

ENDING = "it was asked to end"
MOST_PARKED = 256
"""Runs of a whole team that wait for an answer."""


@dataclass(frozen=True)
class Listening:
    """Where the server is, and the file of its token if it made one."""

    url: str
    token: str = ""
    token_file: Path | None = None


async def serve_team(
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
        workspace, team = parts.front.workspace, parts.team
        self._workspace = workspace
        self._settings: Http = parts.settings
        self._readiness = Readiness(team.shared.state, team.front.configuration) if team else Readiness()
        self._drain = Drain(lambda: workspace.picture.loaded.config.limits.drain_seconds)
        self._watchdog = Watchdog()
        self._telemetry: TeamTelemetry | None = None
        self._parked = ParkedRuns(MOST_PARKED if team else MOST)
        self._home: SharedHome | None = None

    def watch(self) -> None:
        """Open what the settings say about traces, metrics and audit.

        Raises:
            ConfigError: Some of it cannot be opened.
        """
        loaded, team = self._workspace.picture.loaded, self._parts.team
        telemetry = self._telemetry = open_telemetry(loaded.config, loaded.secrets, redact=self._parts.redact)
        figures, parked = telemetry.figures, self._parked
        figures.watch(self._workspace.host)
        figures.add("runs_parked", "Runs that wait for an answer of their users", lambda: len(parked))
        if team is None:
            self._workspace.watch(telemetry.watchers)
            return
        self._workspace.watch(watching_people(telemetry.watchers, team.roster))
        team.desk.state = lambda: self._readiness.state
        team.desk.write_audit = telemetry.audit.write if telemetry.audit else None
        front, queue, state = team.front, self._parts.queue, team.shared.state
        if telemetry.metrics:
            front.note_refusal = telemetry.metrics.count_refused_run
        figures.add("runs_waiting", "Runs that wait for their turn", lambda: queue.waiting if queue else 0)
        figures.add("config_valid", CONFIG_VALID, lambda: int(not front.configuration.trouble))
        figures.add("workspaces_open", "Workspaces that are open", lambda: len(front))
        if state.replicas:
            up = "1 while what replicas share can be reached"
            figures.add("shared_state_up", up, lambda: int(not state.trouble))

    async def open(self, packs: Sequence[str]) -> None:
        """Choose the engine and build the server; with *packs*, it offers nothing but their tools.

        Raises:
            ConfigError: The other replicas keep their files elsewhere.
            UnknownPack: One of them does not exist.
        """
        workspace, team = self._workspace, self._parts.team
        join = None
        if team and team.shared.state.replicas:
            if team.bell is None:  # no PostgreSQL
                self._home = SharedHome(team.shared.state, workspace.paths.global_dir)
                await self._home.require()
                self._home.watch(partial(self._readiness.stop, "failed"))
            join = partial(ReplicaRuns, team.shared, answer_operator=team.desk.answer)
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
            offer=partial(PackTools, packs) if packs else None,
            parked=self._parked,
            seal_keys=team.shared.keys.derive("request-state") if team else (),
            join_others=join,
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
            partial(challenge, self._settings, parts.url),
            admission=parts.admission,
            drain=self._drain,
            routes=parts.routes,
        )
        if self._telemetry:
            metrics = self._telemetry.metrics
            edge = replace(edge, naming=partial(RequestIds, note_status=metrics.count_answer if metrics else None))
            self._telemetry.figures.add("http_connections", "Connections that are open", web.open_connections)
        requests = OpenRequests(edge.around(self._mcp), lambda: self._readiness.state == "draining")
        async with self._mcp.running(), self._answering_here():
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

    def _answering_here(self) -> AbstractAsyncContextManager[None]:
        """Return what answers the operator at a socket of this machine, where no mail is read."""
        team = self._parts.team
        if team is None or team.shared.state.replicas:
            return contextlib.nullcontext()
        return answering_here(self._workspace.paths.global_dir, team.desk.answer)

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
        if self._home:
            await self._home.aclose()
        await self._parts.aclose()
        if self._telemetry:
            await self._telemetry.aclose()
        self._watchdog.release()
