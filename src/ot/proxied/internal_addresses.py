"""AddressRule: which addresses may be connected, by what the user wrote and what somebody else named."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from functools import cached_property

import httpx2

from ot.proxied.reply_faults import Refused
from ot_sdk.network import is_allowed, is_internal, is_public_name, place

type _Origin = tuple[str, str, int]


@dataclass(frozen=True)
class AddressRule:
    """An address that the user wrote may be anywhere; every other one must be public, or be allowed.

    What counts are the addresses that a name has at the moment of connecting, not the name.
    """

    own: tuple[str, ...]
    """The addresses in the settings, the server's first."""
    allowed: tuple[str, ...] = ()
    """Hosts that may have internal addresses, with or without a port."""
    by_user: bool = True
    """Whether the user wrote ``own``, and not a project."""

    @cached_property
    def _origins(self) -> dict[_Origin, bytes]:
        return {_origin(url): url.userinfo for url in map(httpx2.URL, self.own)}

    @cached_property
    def _hosts(self) -> frozenset[str]:
        return frozenset(host for _, host, _ in self._origins)

    def trusts(self, url: httpx2.URL) -> bool:
        """Return whether *url* may be connected wherever its name leads.

        Raises:
            Refused: It is not to be connected at all.
        """
        origin = scheme, host, port = _origin(url)
        is_own = origin in self._origins and url.userinfo in (b"", self._origins[origin])
        if is_own and self.by_user:
            return True
        if url.userinfo and not is_own:
            raise Refused(f"the address of {place(host, port)} holds a user name or password; nothing was sent")
        # A certificate proves who answers. Without one, a name of the public DNS may lead to another machine each time.
        if self.by_user and host in self._hosts and (scheme == "https" or not is_public_name(host)):
            return True
        if is_allowed(self.allowed, host, port):
            return True
        if scheme == "http" and not is_own and "".join(self.own[:1]).startswith("https:"):
            raise Refused(f"the address of {place(host, port)} is not encrypted, but the server's is; nothing was sent")
        return False

    async def check(self, url: httpx2.URL) -> None:
        """Look at every address of *url*; a name that is unknown here connects to nothing by itself.

        Raises:
            Refused: It is not to be connected.
        """
        if not self.trusts(url):
            _, host, port = _origin(url)
            await self.look_up(host, port)

    async def look_up(self, host: str, port: int) -> list[str]:
        """Return the addresses of *host*; raise Refused if one of them is internal."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return []
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        for address in filter(is_internal, addresses):
            raise Refused(self._refusal(host, port, address))
        return addresses

    def _refusal(self, host: str, port: int, address: str) -> str:
        if self.by_user:
            why = "which is not at the origin of an address in your settings"
            advice = ""
        else:
            why = "and a project's server may not be there"
            advice = ", or add the server to your own configuration"
        return (
            f"{host} has the internal address {address}, {why}; nothing was sent. If it should be used, "
            f"add '{place(host, port)}' to security.internal_hosts in your own configuration{advice}"
        )


def _origin(url: httpx2.URL) -> _Origin:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)
