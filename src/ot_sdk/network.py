"""What the server and packs know alike of the network: internal addresses, certificates, when to come back."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Collection, Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import NamedTuple

GLOBAL6 = IPv6Network("2000::/3")
"""All that was ever given out; the rest is local, reserved, or an older address in a newer one."""
SIX_TO_FOUR = IPv6Network("2002::/16")
"""Given up long ago; whether Python takes it for public depends on its release."""
NAT64 = IPv6Network("64:ff9b::/96")
SERVICES = (IPv4Network("192.0.0.0/24"), IPv4Network("168.63.129.16/32"))
"""Where clouds answer their own machines, though the addresses look public."""
CERTIFICATE_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The first that is set counts."""
CERTIFICATE_FOLDER = "SSL_CERT_DIR"
LONGEST = 86_400.0
"""A day: nobody waits longer, and a moment that is decades away overflows what counts down to it."""
NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")


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


class NamedCertificates(NamedTuple):
    """A file and a directory of certificates, and the variable that names the file; what is not named is empty."""

    variable: str
    file: str
    folder: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> NamedCertificates:
        """Return the certificates that *environ* names; REQUESTS_CA_BUNDLE may name a directory."""
        name = next((name for name in CERTIFICATE_FILES if environ.get(name)), "")
        file, folder = environ.get(name, ""), environ.get(CERTIFICATE_FOLDER, "")
        return cls(name, "", folder or file) if file and Path(file).is_dir() else cls(name, file, folder)

    def context(self) -> ssl.SSLContext | None:
        """Return an SSL context that trusts these certificates; None if none are named.

        Raises:
            OSError: There is no certificate.
        """
        if not self.file and not self.folder:
            return None
        return ssl.create_default_context(cafile=self.file or None, capath=self.folder or None)


def retry_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``Retry-After`` asks to wait, at most a day; None where it is missing or malformed."""
    text = headers.get("retry-after", "").strip()
    if NUMBER.fullmatch(text):
        return min(float(text), LONGEST)
    if not text.isascii():
        return None
    try:
        date = parsedate_to_datetime(text)
        # One of the three forms of an HTTP date has no zone; all of them are in GMT.
        moment = (date if date.tzinfo else date.replace(tzinfo=timezone.utc)).timestamp()  # noqa: UP017 - Python 3.10
    except (IndexError, OverflowError, TypeError, ValueError):
        return None
    return min(max(moment - time.time(), 0.0), LONGEST)
