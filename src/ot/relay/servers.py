"""The servers that a relay can use: the shared one, one of its client's own, or that of a newer relay."""

from __future__ import annotations

import os
import sys
from _socket import socket, socketpair

from ot.relay.header import Header
from ot.relay.place import Place, build, find_place
from ot.relay.reach import join_or_summon_daemon, reach_daemon

MAIN = "from ot.entry import main; main()"
SUCCESSOR = "ONETOOL_SUCCESSOR"
"""In the environment of a relay whose client is an older relay, which does all that must outlive a server."""


def say(text: str) -> None:
    """Tell whoever reads the client's log."""
    try:
        os.write(2, f"onetool: {text}\n".encode(errors="replace"))
    except OSError:
        pass  # a full disk, or nobody who listens


class Servers:
    """Starts and reaches servers for one client, as it was when its relay started."""

    def __init__(self, arguments: list[str]) -> None:
        """Remember what is installed, and where the client works, which may be gone later; raise OSError if it is."""
        self.is_successor = os.environ.pop(SUCCESSOR, "") != ""  # it is not for what this one starts
        self._arguments = arguments
        self._cwd = os.getcwdb()
        self._environ = dict(os.environb)
        self._build = build()

    def replaced(self) -> bool:
        """Return whether another version is installed now, or none at this moment: its server is not ours to reach."""
        return build() != self._build

    def join_shared(self) -> socket:
        """Return a connection to the shared server, which is started if there is none.

        Raises:
            NotNow: It cannot be reached at this moment.
            Unshared: It cannot be used from here.
        """
        place = find_place()
        return reach_daemon(place, self._header(place))

    def join_shared_if_ready(self) -> socket | None:
        """Return a connection to the shared server if it answers by now, else see to it that there is one soon.

        Raises:
            Unshared: As above.
        """
        place = find_place()
        return join_or_summon_daemon(place, self._header(place))

    def _header(self, place: Place) -> Header:
        return Header(place.key, self._cwd, tuple(map(os.fsencode, self._arguments)), self._environ)

    def alone(self) -> tuple[socket, socket]:
        """Start a server for this client alone; return the descriptors for requests and for answers."""
        plain = [argument for argument in self._arguments if argument != "--shared"]
        return _spawn([sys.executable, "-P", "-c", MAIN, *plain], {})

    def successor(self) -> tuple[socket, socket]:
        """Return the same for a relay of the version that is installed now: it knows how to reach its own server."""
        # Another interpreter may be at the same path; or the command itself has come from elsewhere.
        known = os.access(sys.executable, os.X_OK)
        command = [sys.executable, "-P", "-c", MAIN] if known else [sys.argv[0]]
        return _spawn([*command, *self._arguments], {SUCCESSOR: "1"})


def _spawn(command: list[str], more: dict[str, str]) -> tuple[socket, socket]:
    requests, stdin = socketpair()
    answers, stdout = socketpair()
    streams = [(os.POSIX_SPAWN_DUP2, stdin.fileno(), 0), (os.POSIX_SPAWN_DUP2, stdout.fileno(), 1)]
    os.posix_spawn(command[0], command, {**os.environ, **more}, file_actions=streams)
    stdin.close()
    stdout.close()
    return requests, answers


def bury_ended() -> None:
    """Let the system forget the servers of this client that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass  # there is none
