"""AddressRule: a server that a project brings may not be at an internal address, unless its user allows it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from ot.servers.reply_faults import Refused

NAT64 = IPv6Network("64:ff9b::/96")
COMPATIBLE = IPv6Network("::/96")


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Decides on the addresses that a name has at the moment of connecting, not on the name."""

    allowed: Collection[str]
    """Hosts that may have internal addresses, with or without a port."""

    async def check(self, host: str, port: int) -> None:
        """Look at every address of *host*; a name that is unknown here connects to nothing by itself.

        Raises:
            Refused: One of them is internal.
        """
        if self._allows(host, port):
            return
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            return
        for *_, address in found:
            self.check_address(host, port, str(address[0]))

    def check_address(self, host: str, port: int, address: str) -> None:
        """Look at the one *address* that was connected.

        Raises:
            Refused: It is internal.
        """
        if not is_internal(address) or self._allows(host, port):
            return
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        raise Refused(
            f"{host} has the internal address {address}, and a project's server may not be there; nothing was sent. "
            f"If it should be, add '{place}' to security.internal_hosts in your own configuration, "
            "or add the server to your own configuration"
        )

    def _allows(self, host: str, port: int) -> bool:
        bare = host.lower().strip("[]")
        return bool({bare, f"{bare}:{port}", f"[{bare}]", f"[{bare}]:{port}"} & {text.lower() for text in self.allowed})


def is_internal(address: str) -> bool:
    """Return whether *address* is not one of the public internet: loopback, link-local, private, reserved."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return True
    return any(not part.is_global or part.is_multicast for part in (found, *_inner(found)))


def _inner(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """Return the older addresses that a newer one stands for."""
    if isinstance(address, IPv4Address):
        return []
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in NAT64 or address in COMPATIBLE:
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [part for part in inner if part is not None]
