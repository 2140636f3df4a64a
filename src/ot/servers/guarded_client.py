"""GuardedClient: an HTTP client that trusts what its user trusts, and connects to nothing that its rule forbids."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import httpx2

from ot.servers.internal_addresses import AddressRule
from ot.servers.reply_faults import Refused
from ot.servers.trusted_certificates import trusted_certificates

type Watch = Callable[[str, Any], Awaitable[None]]
"""What the library calls with each step of a request."""


class GuardedClient(httpx2.AsyncClient):
    """Proxies and certificates are those of the environment."""

    def __init__(self, internal_hosts: Collection[str] | None, **options: Any) -> None:
        """Connect to no internal address but *internal_hosts*; None: to any.

        Raises:
            Refused: The environment names a proxy or certificates that cannot be used.
        """
        self._rule = AddressRule(internal_hosts) if internal_hosts is not None else None
        try:
            super().__init__(verify=trusted_certificates(os.environ), **options)
        except (ImportError, ValueError) as error:
            raise Refused(f"the proxy that the environment names cannot be used: {error}") from error

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:  # pyright: ignore[reportIncompatibleMethodOverride] - passed on as they are
        """Return the response.

        Raises:
            Refused: The address is internal, and the rule forbids it.
        """
        request.extensions = {**request.extensions, "trace": self.watch(request)}
        return await super().send(request, **options)

    def watch(self, request: httpx2.Request) -> Watch:
        """Return what looks at the addresses that *request* goes to."""
        host, port = request.url.host, request.url.port or (443 if request.url.scheme == "https" else 80)
        connected: list[str] = []

        async def note(event: str, details: Any) -> None:
            step = event.partition(".")[2]
            if self._rule and step == "connect_tcp.started":
                connected[:] = [details["host"]]
                await self._rule.check(host, port)
            elif self._rule and step == "connect_tcp.complete" and connected == [host]:
                await _check_peer(self._rule, host, port, details["return_value"])

        return note


async def _check_peer(rule: AddressRule, host: str, port: int, stream: Any) -> None:
    """Look at the address that was connected: the name may have got another one since it was looked up."""
    try:
        rule.check_address(host, port, str(stream.get_extra_info("server_addr")[0]))
    except Refused:
        await stream.aclose()
        raise
