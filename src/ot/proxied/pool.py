"""ServerPool: proxied servers by what they were made of; each is connected at its first use, and let go when idle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ot.errors import LoginNeeded, ServerUnavailable
from ot.execution.caller import Caller
from ot.processes.backoff import Backoff
from ot.processes.pool import Pool
from ot.proxied.asking_servers import AskingServers
from ot.proxied.auth.asked_logins import AskedLogins
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.hosts import on_a_host, state_of_hosts
from ot.proxied.place import ClientRoots
from ot.proxied.spec import ServerSpec

if TYPE_CHECKING:
    from ot.proxied.connection import ServerConnection

AT_ONCE = 4

Changed = Callable[[ServerSpec, ServerDefinitions], None]


class ServerPool(Pool["ServerConnection"]):
    """All connections, by the keys of their specs: two servers of one name are two."""

    def __init__(
        self,
        changed: Changed | None = None,
        *,
        backoff: Callable[[], Backoff] = Backoff,
        roots: ClientRoots | None = None,
        logins: AskedLogins | None = None,
        asking: AskingServers | None = None,
    ) -> None:
        """Start nothing; *changed* gets a server's lists whenever they were fetched, *roots* tell it what it is for.

        Servers that ask their clients something are noted in *asking*.
        """
        super().__init__(backoff)
        self._roots = roots or ClientRoots()
        self.logins = logins or AskedLogins()
        """What asks for a login in the middle of a run."""
        self.asking = asking or AskingServers()
        self._changed: Changed = changed or (lambda spec, definitions: None)

    def connections(self, spec: ServerSpec) -> list[ServerConnection]:
        """Return the connections to the hosts of the server; what any of them offers is what the server does.

        Raises:
            ServerUnavailable: They can never be made.
        """
        return [self.connection(host, spec) for host in spec.hosts]

    def connection(self, spec: ServerSpec, whole: ServerSpec | None = None) -> ServerConnection:
        """Return the one connection to a host, which is made when it is first used; *whole* is its server.

        Raises:
            ServerUnavailable: It can never be made.
        """
        if self._closed:
            raise ServerUnavailable(spec.name, "OneTool is ending")
        if spec.problem:
            raise ServerUnavailable(spec.name, spec.problem)
        if found := self._by_key.get(spec.key):
            return found[0]
        from ot.proxied.connection import ServerConnection  # noqa: PLC0415 - imports the protocol's library

        def report_change(_: ServerSpec, definitions: ServerDefinitions) -> None:
            self._changed(whole or spec, definitions)

        def asks() -> bool:
            self.asking.note((whole or spec).asker)
            return self._holders[connection.held_as] <= 1

        connection = ServerConnection(spec, report_change, self._backoff(spec.key), self._roots, asks)
        self._add(connection)
        return connection

    def _on_idle(self, process: ServerConnection) -> None:
        self._later(process.disconnect_unused())

    async def list_all(self, specs: Iterable[ServerSpec], limit: int = AT_ONCE, caller: Caller | None = None) -> None:
        """Fetch the lists of all *specs*, *limit* servers at a time; one that fails harms no other.

        Where a server wants a login, *caller* is asked for it.
        """
        places = asyncio.Semaphore(limit)

        async def fetch(spec: ServerSpec) -> None:
            async with places:
                if spec.account is None or caller is None:
                    await on_a_host(self.connections(spec), lambda connection, _: connection.read_definitions())
                    return
                connection = self.connection(spec)
                try:
                    await self.logins.retry_after_login(spec.account, caller, connection.read_definitions)
                except LoginNeeded as needed:
                    connection.need_login(str(needed))

        await asyncio.gather(*(fetch(spec) for spec in specs), return_exceptions=True)

    def private_names(self) -> list[str]:
        """Return the connected servers that may keep something for one client alone."""
        live = [connection for connection in self._all() if connection.state == "connected"]
        return [connection.spec.name for connection in live if connection.spec.scope == "private"]

    def states(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the health of each host that was used, by the key of its spec: state, why, since, tools, noise."""
        return {connection.key: connection.health() for connection in self._all()}

    def state(self, spec: ServerSpec) -> Mapping[str, Any]:
        """Return a server's health, as above, with the problems of its hosts; nothing before its first use."""
        used = [(host, self._by_key[host.key][0].health()) for host in spec.hosts if host.key in self._by_key]
        return state_of_hosts(used) if spec.others else used[0][1] if used else {}
