"""Connection: one client over any pair of streams, with the workspace and the server that answer it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import anyio.to_thread
from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport

from ot.config.load import load_config
from ot.config.paths import Paths
from ot.errors import ConfigError, OneToolError
from ot.host import Host
from ot.processes.child_environ import NETWORK
from ot.server.drain import CUT_OFF_SECONDS, Drain
from ot.server.mcp_server import CONNECTION, OneUser, build_server, count_listed_chars
from ot.server.wire import Wire, wire_streams
from ot.version import installed_version
from ot.workspace import Workspace

logger = logging.getLogger(__name__)

START_SECONDS = 3.0
"""How long an end waits for a start that is still under way."""
PER_PROCESS = ("/proc", "/dev")
Began = Callable[["asyncio.Future[None]"], None]
"""Is given what serves, once it does: cancelled, it serves no more."""


@dataclass(frozen=True, slots=True)
class ClientProcess:
    """The process at the other end: where it runs, what follows ``serve`` on its command line, its environment."""

    cwd: Path
    arguments: Sequence[str] = ()
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Connection:
    """Serves one client, from its first line to an orderly end.

    Nothing of it is shared with another connection but what the host holds by key.
    """

    def __init__(self, workspace: Workspace, packs: Sequence[str] = (), name: str = CONNECTION) -> None:
        """Answer from *workspace*, which ends with the connection; *packs* are offered tool by tool, too."""
        workspace.goes_on = True
        self.workspace = workspace
        self.name = name
        """What sessions and parked runs belong to, beside their principal."""
        self.since = time.time()
        self._packs = packs
        self._drain = Drain(lambda: workspace.picture.loaded.config.limits.drain_seconds)
        self._server: FastMCP | None = None
        self._front: OneUser | None = None
        self._wire: Wire | None = None
        self._serving: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, host: Host, client: ClientProcess) -> Self:
        """Return the connection of *client*, with a workspace of its own on *host*; nothing is served yet.

        Raises:
            ConfigError: Its command line, its environment or its configuration cannot be used here.
        """
        options = _options(client.arguments)
        name = secrets.token_hex(8)
        workspace = await open_workspace(host, client, name, trust_project=options.trust_project)
        return cls(workspace, tuple(filter(None, options.packs.split(","))), name)

    def state(self) -> dict[str, Any]:
        """Return its state: the client's directory and name, since when, and how many runs are open."""
        client = self._wire.client if self._wire else ""
        cwd, runs = str(self.workspace.paths.cwd), self.workspace.open_runs
        return {"cwd": cwd, "client": client, "since": self.since, "runs": runs}

    async def prepare(self) -> None:
        """Choose the engine and build the server; where that fails, everything is let go of.

        Raises:
            UnknownPack: One of the packs does not exist.
            EngineUnavailable: The engine that was asked for is unavailable.
        """
        workspace = self.workspace
        try:
            engine = await workspace.choose_engine()
            classic = await workspace.definitions_of(self._packs) if self._packs else None
        except OneToolError:
            await self.aclose()
            raise
        self._front = front = OneUser(workspace, self.name)
        self._server = build_server(front, installed_version(), engine, classic, self._drain)
        workspace.definition_chars = await count_listed_chars(self._server)

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter | int, began: Began | None = None
    ) -> None:
        """Serve until the client goes away or what *began* was given is cancelled; then let go of everything.

        Whoever opened *reader* and *writer* closes them.

        Raises:
            UnknownPack, EngineUnavailable: As ``prepare``, which need not have been called.
        """
        if self._server is None:
            await self.prepare()
        assert self._server is not None
        token = set_transport("stdio")
        try:
            await self._serve(self._server, reader, writer, began)
        finally:
            reset_transport(token)
            await self.aclose()

    async def _serve(
        self, server: FastMCP, reader: asyncio.StreamReader, writer: asyncio.StreamWriter | int, began: Began | None
    ) -> None:
        streams = wire_streams(reader, writer, alone=self.name == CONNECTION, kept=self.workspace.list_kept)
        async with streams as (incoming, self._wire), server._lifespan_manager():  # pyright: ignore[reportPrivateUsage] - FastMCP gives its own stdio transport no other way in
            if self._front:
                self._front.wire = self._wire
            starting = asyncio.ensure_future(self.workspace.start())
            protocol = server._mcp_server  # pyright: ignore[reportPrivateUsage] - as above
            options = protocol.create_initialization_options()
            serving = asyncio.ensure_future(protocol.run(incoming, self._wire, options))
            self._serving = serving
            if began:
                began(serving)
            with suppress(asyncio.CancelledError):
                await serving
            # Cut off while it starts, an engine could not be closed, and its threads would outlive the interpreter.
            await asyncio.wait((starting,), timeout=START_SECONDS)

    async def drain(self, *, at_once: bool = False) -> None:
        """Wait until every request is answered, in time or when its time is over; start no more runs."""
        seconds = self._drain.begin(at_once=at_once)
        logger.info("asked to end: open runs have %g s", seconds)
        if self._wire and not await self._wire.all_answered(seconds):
            self._drain.cut_off()
            await self._wire.all_answered(CUT_OFF_SECONDS)

    def end(self) -> None:
        """Serve no more, at once; ``serve`` returns when everything is let go of."""
        if self._serving:
            self._serving.cancel()

    async def aclose(self) -> None:
        """Let go of everything; ``serve`` does it at its end, so this is for a connection that was never served."""
        await self.workspace.aclose()


def _require_same_network(environ: Mapping[str, str], own: Mapping[str, str] = os.environ) -> None:
    """Refuse a client whose proxies or certificates are others: what connects from here would not use them.

    Raises:
        ConfigError: They are; the client can be served alone.
    """
    names = NETWORK | {"ALL_PROXY", "all_proxy"}
    if differs := sorted(name for name in names if environ.get(name) != own.get(name)):
        raise ConfigError(f"the shared server was started with another value of {', '.join(differs)}")


def _require_own_directory(cwd: Path) -> None:
    """Refuse a directory that means another one in the client's process than in this one.

    Raises:
        ConfigError: It is one of those; the client can be served alone.
    """
    if not cwd.is_absolute() or any(path.is_relative_to(top) for path in (cwd, cwd.resolve()) for top in PER_PROCESS):
        raise ConfigError(f"a shared server cannot work in {cwd}, which is a different directory in each process")


async def open_workspace(host: Host, client: ClientProcess, connection: str, *, trust_project: bool) -> Workspace:
    """Return a workspace for *client* on *host*, by the name of its *connection*.

    Raises:
        ConfigError: Its environment or its configuration cannot be used here.
    """
    _require_same_network(client.environ)
    paths = Paths.find(client.environ, client.cwd)
    _require_own_directory(paths.cwd)
    load = partial(load_config, paths, trust_project=trust_project)
    # Read in a thread: other clients do not wait for the disk of this one.
    loaded = await anyio.to_thread.run_sync(load)
    return Workspace(host, paths, trust_project=trust_project, loaded=loaded, connection=connection)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Return a client's options; raise ConfigError if one has no meaning over a shared connection."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for flag in ("--shared", "--trust-project", "--json"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--packs", default="")
    try:
        options, unknown = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise ConfigError(f"onetool serve: {error}") from None
    if unknown:
        raise ConfigError(f"onetool serve: {' '.join(unknown)} is not for a shared server")
    return options
