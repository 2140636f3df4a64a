"""Several hosts of one server: a call goes to one that takes it, and never to two that may have carried it out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urlsplit

from ot.errors import ServerUnavailable
from ot.proxied.spec import ServerSpec

REST_SECONDS = 1.0
"""How long the others come first after a host has not taken a call; one that cannot be connected backs off itself."""


class ServerHost(Protocol):
    """The connection to one host."""

    spec: ServerSpec
    in_flight: int
    """Calls that are on it or wait for it."""

    @property
    def rests(self) -> bool:
        """Whether it failed a moment ago, or asked to be left alone."""
        ...

    def rest(self, seconds: float) -> None:
        """Let others be asked first for *seconds*."""
        ...


async def on_a_host[H: ServerHost, T](hosts: Sequence[H], work: Callable[[H, bool], Awaitable[T]]) -> T:
    """Return the result of *work* on the first of *hosts* that takes it; it is told whether there is another host.

    The host with the fewest calls comes first; those that failed a moment ago come last.

    Raises:
        ServerUnavailable: None has taken it, or one may have, and whether it took effect is unknown.
    """
    if len(hosts) == 1:
        return await work(hosts[0], False)
    failures: list[ServerUnavailable] = []
    waiting = sorted(hosts, key=lambda host: (host.rests, host.in_flight))
    while waiting:
        host = waiting.pop(0)
        try:
            return await work(host, bool(waiting))
        except ServerUnavailable as error:
            named = replace(error, why=f"{host_name(host.spec)}: {error.why}")
            if error.unknown:
                raise named from None
            host.rest(max(error.retry_seconds, REST_SECONDS))
            failures.append(named)
    why = "; ".join(error.why for error in failures)
    pause = min(error.retry_seconds for error in failures)
    name = hosts[0].spec.name
    raise ServerUnavailable(name, f"none of its {len(hosts)} hosts takes the call: {why}", retry_seconds=pause)


def host_name(spec: ServerSpec) -> str:
    """Return the host and port of a server's address."""
    return urlsplit(spec.url).netloc.rpartition("@")[2]


def state_of_hosts(used: Sequence[tuple[ServerSpec, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the state of a server with several hosts, some of them *used*: the best one's, and why others are not."""
    order = ("connected", "starting", "idle", "login needed", "failed")
    states = sorted((health for _, health in used), key=lambda health: order.index(health["state"]))
    if not states:
        return {}
    why = "; ".join(f"{host_name(host)}: {health['why']}" for host, health in used if health["why"])
    return {**states[0], "why": why}
