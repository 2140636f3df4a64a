"""ServerPool: the proxied servers of one OneTool; each is connected at its first use, and let go when idle."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ot.errors import ServerUnavailable
from ot.execution.servers.call_trace import CallTrace
from ot.execution.servers.client_roots import ClientRoots
from ot.execution.servers.server_backoff import ServerBackoff
from ot.execution.servers.server_connection import ServerConnection, Work
from ot.execution.servers.server_spec import ServerSpec
from ot.registry.server_definitions import ServerDefinitions

DRAIN_SECONDS = 30.0
REAP_PAUSE_SECONDS = 1.0
AT_ONCE = 4

Changed = Callable[[str, ServerDefinitions], None]
NewBackoff = Callable[[], ServerBackoff]


class ServerPool:
    """All connections, by what they were made of."""

    def __init__(
        self,
        changed: Changed | None = None,
        *,
        backoff: NewBackoff = ServerBackoff,
        roots: ClientRoots | None = None,
    ) -> None:
        """Start nothing; *changed* gets a server's lists whenever they were fetched, *roots* tell it what it is for."""
        self._roots = roots or ClientRoots()
        self._connections: dict[str, ServerConnection] = {}
        self._tools: dict[str, Mapping[str, Mapping[str, Any]]] = {}
        self._changed = changed
        self._new_backoff = backoff
        self._leaving: set[asyncio.Task[None]] = set()
        self._reaper: asyncio.Task[None] | None = None
        self._closed = False

    # ---------------------------------------------------------------- calls

    async def prepare(self, spec: ServerSpec) -> None:
        """Return when the server is connected; its start has a deadline of its own.

        Raises:
            ServerUnavailable: It is not.
        """
        await self._connection(spec).ready()

    async def use(self, spec: ServerSpec, tool: str, trace: CallTrace, work: Work) -> Any:
        """Return what *work* gets of the server.

        Raises:
            ToolError: It is not there, or answered with an error.
        """
        return await self._connection(spec).use(tool, trace, work)

    def _connection(self, spec: ServerSpec) -> ServerConnection:
        if self._closed:
            raise ServerUnavailable(spec.name, "OneTool is ending")
        connection = self._connections.get(spec.key)
        if connection is None:
            connection = ServerConnection(spec, self._take, self._new_backoff(), self._roots)
            self._connections[spec.key] = connection
        if self._reaper is None or self._reaper.done():
            self._reaper = asyncio.ensure_future(self._reap())
        return connection

    # ---------------------------------------------------------------- lists

    def definition(self, server: str, tool: str) -> Mapping[str, Any]:
        """Return what *server* said last of that tool; nothing when it said nothing."""
        return self._tools.get(server, {}).get(tool, {})

    async def list_all(self, specs: Iterable[ServerSpec], limit: int = AT_ONCE) -> None:
        """Fetch the lists of all *specs*, *limit* servers at a time; one that fails harms no other."""
        places = asyncio.Semaphore(limit)

        async def fetch(spec: ServerSpec) -> None:
            async with places:
                await self._connection(spec).listed()

        await asyncio.gather(*(fetch(spec) for spec in specs), return_exceptions=True)

    def _take(self, server: str, definitions: ServerDefinitions) -> None:
        # By name: a call must not cost more where there are more tools.
        self._tools[server] = {str(tool.get("name")): tool for tool in definitions.tools}
        if self._changed:
            self._changed(server, definitions)

    # ---------------------------------------------------------------- how they are

    def states(self) -> Mapping[str, Mapping[str, Any]]:
        """Return how each server is that was used: state, why, since, tools, noise."""
        return {connection.spec.name: _state(connection) for connection in self._connections.values()}

    # ---------------------------------------------------------------- ending

    def keep_only(self, keys: Iterable[str]) -> None:
        """Let go of every server that is not among *keys*, when its calls have ended; the others may be tried again."""
        kept = set(keys)
        for key, connection in list(self._connections.items()):
            if key in kept:
                connection.forgive()
            else:
                del self._connections[key]
                self._later(connection.aclose(DRAIN_SECONDS))

    async def _reap(self) -> None:
        while self._connections and not self._closed:
            await asyncio.sleep(min(REAP_PAUSE_SECONDS, self._shortest_idle() / 4))
            self.reap_idle()

    def _shortest_idle(self) -> float:
        return min((connection.spec.idle_seconds for connection in self._connections.values()), default=4.0)

    def reap_idle(self) -> None:
        """Let go of the servers that have been idle for their time; one with a call in flight never is."""
        now = time.monotonic()
        for connection in self._connections.values():
            idle = now - connection.last_used >= connection.spec.idle_seconds
            if connection.state == "connected" and not connection.in_flight and idle:
                self._later(connection.leave_unused())

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def aclose(self) -> None:
        """End all."""
        self._closed = True
        if self._reaper:
            self._reaper.cancel()
        for connection in self._connections.values():
            self._later(connection.aclose())
        if self._leaving:
            await asyncio.wait(list(self._leaving), timeout=10.0)


def _state(connection: ServerConnection) -> dict[str, Any]:
    definitions = connection.definitions
    return {
        "state": connection.state,
        "why": connection.why,
        "since": connection.since,
        "tools": len(definitions.tools) if definitions else None,
        "noise": connection.noise.text,
    }
