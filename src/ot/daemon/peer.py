"""Who is at the other end of a socket: a process of this user, confined as this one is, or nobody to talk to."""

from __future__ import annotations

import os
import socket
import struct
import sys

from ot.relay.place import confinement

MAC_LEVEL, MAC_CREDENTIALS, MAC_PID = 0, 1, 2
"""SOL_LOCAL, LOCAL_PEERCRED and LOCAL_PEERPID, which Python does not name."""
MAC_CREDENTIAL_BYTES = 76


class ClientRefused(Exception):
    """The client is not served here; its relay serves it alone."""


class ServerRetires(ClientRefused):
    """The client is not served by this server any more; its relay tries again, and finds another."""


def require_own_peer(client: socket.socket) -> None:
    """Return when the process at the other end belongs to this user and has the same limits as this process.

    A client in a sandbox confines its own server; this one, outside of it, would be a way out.

    Raises:
        ClientRefused: It is somebody else's, is confined otherwise, or has gone.
    """
    try:
        pid, user = _mac_peer(client) if sys.platform == "darwin" else _linux_peer(client)
        same = confinement(pid) == confinement("self")
    except (OSError, struct.error):
        raise ClientRefused("the client cannot be identified") from None
    if user != os.getuid():
        raise ClientRefused("the client belongs to another user")
    if not same:
        raise ClientRefused("the client is confined otherwise than the shared server")


def _linux_peer(client: socket.socket) -> tuple[int, int]:
    size = struct.calcsize("3i")
    pid, user, _ = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return pid, user


def _mac_peer(client: socket.socket) -> tuple[int, int]:
    credentials = client.getsockopt(MAC_LEVEL, MAC_CREDENTIALS, MAC_CREDENTIAL_BYTES)
    _, user = struct.unpack_from("2I", credentials)
    (pid,) = struct.unpack("i", client.getsockopt(MAC_LEVEL, MAC_PID, struct.calcsize("i")))
    return pid, user
