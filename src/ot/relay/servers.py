"""The servers that a relay can use: the shared one, or one of its client's own."""

from __future__ import annotations

import os
import sys
from _socket import socket, socketpair

from ot.relay.header import Header
from ot.relay.place import ServerGone, find_place
from ot.relay.reach import reach_daemon

ALONE = "from ot.entry import main; main()"


def say(text: str) -> None:
    """Tell whoever reads the client's log."""
    try:
        os.write(2, f"onetool: {text}\n".encode(errors="replace"))
    except OSError:
        pass  # a full disk, or nobody who listens


def reached(arguments: list[str]) -> socket:
    """Return a connection to the server of the version that is installed now."""
    place = find_place()
    return reach_daemon(place, Header(place.key, os.getcwdb(), tuple(map(os.fsencode, arguments)), dict(os.environb)))


def reached_again(arguments: list[str]) -> socket:
    """Return a connection to a new server; the one that has just died may still have seemed to listen."""
    try:
        return reached(arguments)
    except ServerGone:
        return reached(arguments)


def served_alone(arguments: list[str]) -> tuple[socket, socket]:
    """Return where a server that is this client's alone takes requests, and where its answers come."""
    requests, stdin = socketpair()
    answers, stdout = socketpair()
    plain = [argument for argument in arguments if argument != "--shared"]
    streams = [(os.POSIX_SPAWN_DUP2, stdin.fileno(), 0), (os.POSIX_SPAWN_DUP2, stdout.fileno(), 1)]
    command = [sys.executable, "-P", "-c", ALONE, *plain]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=streams)
    stdin.close()
    stdout.close()
    return requests, answers
