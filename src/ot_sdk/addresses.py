"""Internal addresses: those that are not of the public internet, and the hosts that a user allows to have one."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

GLOBAL6 = IPv6Network("2000::/3")
"""All that was ever given out; the rest is local, reserved, or an older address in a newer one."""
SIX_TO_FOUR = IPv6Network("2002::/16")
"""Given up long ago; whether Python takes it for public depends on its release."""
NAT64 = IPv6Network("64:ff9b::/96")
SERVICES = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))
"""Where clouds answer their own machines, though the addresses look public."""


def is_internal(address: str) -> bool:
    """Return whether *address* is not one of the public internet: loopback, link-local, private, reserved."""
    try:
        found = ip_address(address)
    except ValueError:
        return True
    return _is_internal(found)


def is_allowed(allowed: Collection[str], host: str, port: int) -> bool:
    """Return whether *allowed* lists *host*, with or without the port."""
    bare = host.lower().strip("[]")
    return bool({bare, f"{bare}:{port}", f"[{bare}]", f"[{bare}]:{port}"} & {text.lower() for text in allowed})


def place(host: str, port: int) -> str:
    """Return *host* and *port* as a list of allowed hosts has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_public_name(host: str) -> bool:
    """Return whether whoever owns the name in the public DNS decides where *host* leads."""
    try:
        ip_address(host)
    except ValueError:
        return "." in host
    return False


def _is_internal(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return not address.is_global or address.is_multicast or any(address in network for network in SERVICES)
    if address in NAT64:
        return _is_internal(IPv4Address(int(address) & 0xFFFFFFFF))
    return address not in GLOBAL6 or address in SIX_TO_FOUR or not address.is_global
