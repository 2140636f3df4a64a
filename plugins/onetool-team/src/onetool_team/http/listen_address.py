"""Where the server listens: [HOST:]PORT, read, judged and bound."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import sys
from dataclasses import dataclass
from ipaddress import ip_address

from ot.errors import ConfigError

LOOPBACK = "127.0.0.1"
WAITING = 2048
"""Connections that may wait to be accepted."""
ATTACH_FILTER = 26
"""Linux's SO_ATTACH_FILTER, which the socket module does not name."""
NO_FIRST_PACKETS = b"".join(
    struct.pack("=HBBI", *step)
    for step in (
        (0x30, 0, 0, 13),  # load the flags of TCP's header
        (0x54, 0, 0, 0x12),  # of them SYN and ACK
        (0x15, 0, 1, 0x02),  # SYN alone
        (0x06, 0, 0, 0),  # is dropped
        (0x06, 0, 0, 0xFFFFFFFF),  # all else is kept
    )
)
"""A program for the kernel, as classic BPF: of a connection, the packet that asks for it."""
FORM = "write PORT, HOST:PORT or [IPV6]:PORT, such as 8000 or 0.0.0.0:8000"


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host, as it was written, and a port; port 0 means any that is free."""

    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> ListenAddress:
        """Return the address that *text* names.

        Raises:
            ConfigError: It names none.
        """
        host, colon, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        misread = (colon and not bare) or (":" in bare and bare == host)
        if misread or not (port.isascii() and port.isdigit()) or int(port) > 65535:
            raise ConfigError(f"'{text[:100]}' is not an address to listen on", hint=FORM)
        return cls(bare or LOOPBACK, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it: every address that the host stands for must be loopback."""
        return all(ip_address(found[4][0]).is_loopback for found in self._look_up())

    def bind(self) -> socket.socket:
        """Return a socket that listens.

        Raises:
            ConfigError: The address is taken, or not this machine's.
        """
        family, kind, protocol, _, where = self._look_up()[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
            # From now on clients wait instead of being refused, while the rest of the server starts.
            listening.listen(WAITING)
        except OSError as error:
            listening.close()
            why = f"cannot listen on {self.host}:{self.port}: {error.strerror}"
            raise ConfigError(why, hint="choose another port or host, or end what uses this one") from None
        listening.setblocking(False)
        return listening

    def _look_up(self) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError as error:
            raise ConfigError(f"the host '{self.host}' is unknown: {error.strerror}", hint=FORM) from None
        return [(one[0], one[1], one[2], one[3], (str(one[4][0]), int(one[4][1]))) for one in found]


def turn_newcomers_away(listening: socket.socket) -> None:
    """Have the kernel begin no further connections; those that have begun can still be accepted.

    Who is turned away hears nothing and asks again after a second. By then the socket is closed and the connection
    refused, which tells a balancer that nothing was sent. A kernel that cannot do so goes on as before.
    """
    if sys.platform == "linux":
        steps = ctypes.create_string_buffer(NO_FIRST_PACKETS, len(NO_FIRST_PACKETS))
        program = struct.pack("HP", len(NO_FIRST_PACKETS) // 8, ctypes.addressof(steps))
        with contextlib.suppress(OSError):
            listening.setsockopt(socket.SOL_SOCKET, ATTACH_FILTER, program)


def url_of(listening: socket.socket, path: str = "") -> str:
    """Return the address of *path* at a socket."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
