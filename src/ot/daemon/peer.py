"""Who is at the other end of a socket: a process of this user, confined as this one is, or nobody to talk to."""

from __future__ import annotations

import os
import socket

from ot.relay.place import confinement
from ot.relay.reach import peer


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
        pid, user = peer(client)
        same = confinement(pid) == confinement("self")
    except OSError:
        raise ClientRefused("the client cannot be identified") from None
    if user != os.getuid():
        raise ClientRefused("the client belongs to another user")
    if not same:
        raise ClientRefused("the client is confined otherwise than the shared server")
