"""The connections of a server: how many there may be, and which one is closed where there are too many."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Protocol

SPARE = 16
"""Beyond those that are being answered, so many may always be heard: probes, and whoever is told to come again."""
PUBLIC_PART = 4
"""Unless a setting says otherwise, one public address may have a quarter of all connections."""
NETWORK_BITS = 64
"""What one holder of IPv6 addresses has at least."""


class Closable(Protocol):
    """A connection."""

    def abort(self) -> None:
        """Close it at once."""
        ...


class Connections:
    """All that are open; those that wait have no whole request, so that closing the oldest of them costs little."""

    def __init__(self, most: int, per_address: int = 0) -> None:
        """Let *most* be answered at a time, and *per_address* be open from one address.

        Without *per_address*, a public address may have a part of *most*. A private one is not bounded then: a
        balancer has such an address, and all clients come from it.
        """
        self._most = most
        self._per_address = per_address
        self._open: dict[Closable, str] = {}
        self._waiting: dict[Closable, None] = {}
        """In the order in which they began to wait."""
        self._of_address = Counter[str]()

    @property
    def answered(self) -> int:
        """How many have a whole request that is being answered."""
        return len(self._open) - len(self._waiting)

    def enter(self, connection: Closable, address: str) -> None:
        """Take a new one, and close the one that has waited longest if there are too many now."""
        origin, bound = self._limit_for(address)
        self._open[connection] = origin
        self._of_address[origin] += 1
        self._waiting[connection] = None
        if self._of_address[origin] > bound:
            self._close(next(one for one in self._waiting if self._open[one] == origin))
        elif len(self._open) > self._most + SPARE:
            self._close(next(iter(self._waiting)))

    def wait(self, connection: Closable) -> None:
        """Note that *connection* has no request that is being answered."""
        if connection in self._open:
            self._waiting[connection] = None

    def hear(self, connection: Closable) -> None:
        """Note that a request has arrived whole on *connection*."""
        self._waiting.pop(connection, None)

    def leave(self, connection: Closable) -> None:
        """Forget *connection*."""
        origin = self._open.pop(connection, None)
        self._waiting.pop(connection, None)
        if origin is not None:
            self._of_address[origin] -= 1
            if not self._of_address[origin]:
                del self._of_address[origin]

    def _close(self, connection: Closable) -> None:
        self.leave(connection)
        connection.abort()

    def _limit_for(self, address: str) -> tuple[str, int]:
        """Return whom *address* is counted for, and how many connections they may have."""
        unbounded = self._most + SPARE
        try:
            found = ip_address(address)
        except ValueError:  # a socket of this machine
            return address, unbounded
        if isinstance(found, IPv6Address):
            found = found.ipv4_mapped or found
        if not self._per_address and not found.is_global:
            return str(found), unbounded
        is_long = isinstance(found, IPv6Address)
        origin = str(ip_network((int(found), NETWORK_BITS), strict=False)) if is_long else str(found)
        return origin, self._per_address or max(1, self._most // PUBLIC_PART)
