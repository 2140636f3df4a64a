"""TeamFront: receives everyone who uses a team's server, each in a workspace of their own on the one host."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio.to_thread
from fastmcp import Context
from fastmcp.exceptions import ToolError

from onetool_team.identity import SCOPE_KEY, Identity
from onetool_team.live_configuration import LiveConfiguration
from onetool_team.own_permissions import OwnPermissions, PermissionBook
from onetool_team.settings import Http
from onetool_team.workspaces import WorkspaceDirectories
from ot.config.load import Loaded
from ot.config.principal import Owner, os_user
from ot.errors import ConfigError, OneToolError
from ot.execution.caller import Caller
from ot.host import Host
from ot.logs import current_principal
from ot.registry.extension_source import Extension, UserPacks
from ot.server.front import client_name
from ot.workspace import Workspace

logger = logging.getLogger(__name__)

ASK_SECONDS = 120.0
"""The most that a question waits over HTTP: a parked run holds a process of the engine, and balancers lose patience."""
LOOK_SECONDS = 15.0
"""How often unused workspaces are looked for."""
FULL = "this server has no room for another user now: all of its workspaces are in use. Try again in a minute"
UNUSABLE = "your workspace could not be opened: ask who operates this server to look at its log"


class NotOpened(ToolError):
    """A workspace is not open, and nothing of a run has begun; the text says why, for whoever sent it."""

    def __init__(self, why: str, outcome: str, seconds: int) -> None:
        """Refuse because of *why*, which counts as *outcome*; after *seconds* it may be tried again."""
        super().__init__(why)
        self.outcome = outcome
        self.seconds = seconds


@dataclass
class OpenWorkspace:
    """One principal's workspace, and who uses it."""

    workspace: Workspace
    users: int = 0
    used: float = field(default_factory=time.monotonic)

    @property
    def is_free(self) -> bool:
        """Whether nobody uses it; a run that waits for an answer does."""
        return not self.users and not self.workspace.open_runs

    def is_idle(self, seconds: float) -> bool:
        """Return whether nobody has used it for *seconds*, and no session is kept in it."""
        return self.is_free and not self.workspace.sessions.count and time.monotonic() - self.used >= seconds


class TeamFront:
    """Finds or makes the workspace of whoever sends a request, and closes those that nobody uses."""

    wire = None

    def __init__(self, host: Host, configuration: LiveConfiguration, book: PermissionBook, **options: Any) -> None:
        """Open the operator's own workspace, from which packs are announced; each gets the same *options*.

        What users always allow is kept in *book*. The directory of the *configuration* is not used: nobody works where
        the server was started.

        Raises:
            ConfigError: The configuration cannot be used.
        """
        self._host = host
        self._book = book
        packs = UserPacks(configuration.paths.global_dir)

        def read_packs(_: Loaded) -> Sequence[Extension]:
            return packs.read()

        self._options = options = {"extensions": read_packs, **options}
        self.configuration = configuration
        if configuration.loaded.config.engines.use == "trusted":
            raise ConfigError("engines.use: trusted has no jail, and would let users reach each other's files")
        self._directories = WorkspaceDirectories(self.settings.workspaces, configuration.paths)
        paths = self._directories.of_operator()
        self.workspace = Workspace(host, paths, load=partial(configuration.load, paths, Owner()), **options)
        self._open: dict[str, OpenWorkspace] = {}
        self._opening: dict[str, asyncio.Task[OpenWorkspace]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self.note_refusal: Callable[[str], None] = lambda outcome: None
        """Takes why a workspace was not opened, in a word."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def settings(self) -> Http:
        """What the operator's configuration says now."""
        return self.configuration.settings

    def start(self) -> None:
        """Begin to find out what servers offer, and to look for workspaces that nobody uses."""
        self.workspace.ask_servers_later()
        self._looking = self._looking or asyncio.ensure_future(self._look())

    @asynccontextmanager
    async def receive(self, ctx: Context) -> AsyncGenerator[tuple[Workspace, Caller]]:
        """Yield the workspace of whoever sent the request, and who that is.

        Raises:
            ToolError: Nobody is known to have sent it, or there is no room.
        """
        identity = identity_of(ctx)
        caller = Caller(
            identity.principal,
            client=client_name(ctx),
            groups=identity.groups,
            admin="admin" in identity.scopes,
        )
        async with self.enter(identity.principal) as workspace:
            workspace.most_parked = self.settings.quotas.of(identity.groups).parked
            yield workspace, caller

    @asynccontextmanager
    async def enter(self, principal: str) -> AsyncGenerator[Workspace]:
        """Yield the workspace of *principal*, which stays open meanwhile.

        Raises:
            NotOpened: It cannot be opened.
        """
        logged = current_principal.set(principal)  # a worker that carries out its runs has no request that says it
        try:
            place = await self._place(principal)
            place.users += 1
            try:
                yield place.workspace
            finally:
                place.users -= 1
                place.used = time.monotonic()
        finally:
            current_principal.reset(logged)

    async def _place(self, principal: str) -> OpenWorkspace:
        """Return the open workspace of *principal*; those who ask at the same time wait for the same one."""
        while True:
            if place := self._open.get(principal):
                return place
            opening = self._opening.get(principal)
            if opening is None:
                opening = self._opening[principal] = asyncio.ensure_future(self._open_workspace(principal))
                opening.add_done_callback(lambda _: self._opening.pop(principal, None))
            try:
                place = await asyncio.shield(opening)
            except NotOpened as refused:
                self.note_refusal(refused.outcome)
                raise
            except (OneToolError, OSError) as error:
                logger.error("the workspace of %s cannot be opened: %s", principal, error)
                self.note_refusal("WorkspaceUnusable")
                raise NotOpened(UNUSABLE, "WorkspaceUnusable", 30) from None
            if self._open.get(principal) is place:
                return place

    async def _open_workspace(self, principal: str) -> OpenWorkspace:
        self._make_room()
        paths, owner = await anyio.to_thread.run_sync(self._directories.of, principal)
        await self.configuration.refresh()
        loaded = await anyio.to_thread.run_sync(self.configuration.of, paths, owner)
        own = OwnPermissions(self._book, principal)
        workspace = Workspace(
            self._host,
            paths,
            owner=owner,
            loaded=loaded,
            load=partial(self.configuration.load, paths, owner),
            allow_always=own.allow,
            always_allowed=own.allows,
            **self._options,
        )
        workspace.definition_chars = self.workspace.definition_chars
        workspace.most_ask_seconds = ASK_SECONDS
        place = self._open[principal] = OpenWorkspace(workspace)
        return place

    # ---------------------------------------------------------------- closing

    def _make_room(self) -> None:
        """Close the workspace that was used longest ago, if there are too many."""
        if len(self._open) + len(self._opening) <= self.settings.workspaces.most:
            return
        free = [principal for principal, place in self._open.items() if place.is_free]
        if not free:
            raise NotOpened(FULL, "NoRoom", 10)
        # One that keeps a session is closed only if there is no other.
        oldest = min(free, key=lambda name: (bool(self._open[name].workspace.sessions.count), self._open[name].used))
        self._close(oldest)

    async def _look(self) -> None:
        while True:
            seconds = self.settings.workspaces.idle_seconds
            await asyncio.sleep(min(LOOK_SECONDS, seconds / 4))
            await self.configuration.refresh()  # so that operators see an error before anybody asks
            self.close_idle(seconds)

    def close_idle(self, seconds: float) -> None:
        """Begin to close the workspaces that nobody has used for *seconds*."""
        for principal in [name for name, place in self._open.items() if place.is_idle(seconds)]:
            self._close(principal)

    async def close(self, principal: str) -> None:
        """Close the workspace of *principal* now, if it is open."""
        if principal in self._open:
            self._close(principal)
        await asyncio.gather(*self._closing)

    def _close(self, principal: str) -> None:
        closing = asyncio.ensure_future(self._close_workspace(self._open.pop(principal).workspace))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close_workspace(self, workspace: Workspace) -> None:
        await workspace.aclose()
        await anyio.to_thread.run_sync(self._directories.release, workspace.paths.cwd)

    async def aclose(self) -> None:
        """Close every workspace; the host is its maker's to close."""
        if self._looking:
            self._looking.cancel()
        for opening in list(self._opening.values()):
            opening.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for principal in list(self._open):
            self._close(principal)
        await asyncio.gather(*self._closing)
        await self.workspace.aclose()
        await anyio.to_thread.run_sync(self._directories.close)


def may_run(identity: Identity) -> bool:
    """Return whether programs of *identity* are run at all."""
    # A principal without "|" could be the user of this process, whose things are the operator's.
    is_somebody = "|" in identity.principal and identity.principal != os_user()
    return is_somebody and bool(identity.scopes & {"run", "admin"})


def identity_of(ctx: Context) -> Identity:
    """Return who sent the request, as the layer that checked its token says.

    Raises:
        ToolError: Nobody is known to have sent it, or it may not run programs.
    """
    request: Any = ctx.request_context.request if ctx.request_context else None
    identity = request.scope.get(SCOPE_KEY) if request is not None else None
    if not isinstance(identity, Identity) or not may_run(identity):
        raise ToolError("nobody is known to have sent this request, or the token lacks the scope 'run'")
    return identity
