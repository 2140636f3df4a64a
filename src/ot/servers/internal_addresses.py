"""AddressRule: a server that a project brings may not be at an internal address, unless its user allows it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from dataclasses import dataclass

from ot.servers.reply_faults import Refused
from ot_sdk.addresses import is_allowed, is_internal, place


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
        if is_allowed(self.allowed, host, port):
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
        if not is_internal(address) or is_allowed(self.allowed, host, port):
            return
        raise Refused(
            f"{host} has the internal address {address}, and a project's server may not be there; nothing was sent. "
            f"If it should be, add '{place(host, port)}' to security.internal_hosts in your own configuration, "
            "or add the server to your own configuration"
        )
