"""Internal addresses: those that are not of the public internet, and the hosts that a user allows to have one."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

GLOBAL6 = IPv6Network("2000::/3")
"""All that was ever given out; the rest is local, reserved, or an older address in a newer one."""
NAT64 = IPv6Network("64:ff9b::/96")
SERVICES = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))
"""Where clouds answer their own machines, though the addresses look public."""


def is_internal(address: str) -> bool:
    """Return whether *address* is not one of the public internet: loopback, link-local, private, reserved."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return True
    return any(_is_internal(part) for part in (found, *_inner(found)))


def is_allowed(allowed: Collection[str], host: str, port: int) -> bool:
    """Return whether *allowed* lists *host*, with or without the port."""
    bare = host.lower().strip("[]")
    return bool({bare, f"{bare}:{port}", f"[{bare}]", f"[{bare}]:{port}"} & {text.lower() for text in allowed})


def place(host: str, port: int) -> str:
    """Return *host* and *port* as a list of allowed hosts has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_internal(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not address.is_global or address.is_multicast or any(address in network for network in SERVICES)
    return address not in NAT64 and (address not in GLOBAL6 or not address.is_global)


def _inner(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """Return the older addresses that a newer one stands for."""
    if isinstance(address, IPv4Address):
        return []
    inner = [address.sixtofour, *(address.teredo or ())]
    if address in NAT64:
        inner.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return [part for part in inner if part is not None]
