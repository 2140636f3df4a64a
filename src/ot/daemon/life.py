"""Life: the lock and the socket that make one process the shared server of its key."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path

from ot.relay.place import Place, build
from ot.relay.reach import READY

PREDECESSOR_SECONDS = 3.0
"""How long a server that can no longer be reached has to notice it and to let go."""
PAUSE_SECONDS = 0.02
BACKLOG = 256


class Life:
    """Held from the first moment of a server until it takes nobody any more."""

    def __init__(self, place: Place, lock: int) -> None:
        """Listen at *place*, whose *lock* is held."""
        self.place = place
        self.since = time.time()
        self._lock = lock
        self._build = build()
        self._note(b"")
        self.listener = _listening(place)
        self._socket = _inode(place.socket)

    @classmethod
    def begun(cls, place: Place) -> Life | None:
        """Return the life of a new server, or nothing where another one lives."""
        lock = os.open(place.life, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        if _locked(lock, place):
            return cls(place, lock)
        os.close(lock)
        return None

    def ready(self) -> None:
        """Let clients know that a welcome takes no longer than usual."""
        self._note(READY)

    def _note(self, state: bytes) -> None:
        with suppress(OSError):  # a full disk: clients wait a little longer for a server that hangs
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, b"%d %s\n" % (os.getpid(), state), 0)

    def is_current(self) -> bool:
        """Return whether clients still find this server, and in the version that is installed."""
        return _inode(self.place.socket) == self._socket and build() == self._build

    def end(self) -> None:
        """Let a successor begin: who connects from now on does not find this server."""
        if self._lock < 0:
            return
        if _inode(self.place.socket) == self._socket:
            with suppress(OSError):
                Path(self.place.socket).unlink()
        os.close(self._lock)
        self._lock = -1


def _locked(lock: int, place: Place) -> bool:
    until = time.monotonic() + PREDECESSOR_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if _answers(place.socket) or time.monotonic() > until:
                return False
        time.sleep(PAUSE_SECONDS)


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def _listening(place: Place) -> socket.socket:
    """Return a socket that has the place's name only once it listens: clients never find one that refuses them."""
    for left in Path(place.directory).glob(f"{Path(place.socket).name}.*"):
        left.unlink(missing_ok=True)
    fresh = f"{place.socket}.{os.getpid()}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(fresh)
    listener.listen(BACKLOG)
    os.replace(fresh, place.socket)  # noqa: PTH105 - paths of the relay are text
    return listener


def _inode(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISSOCK(found.st_mode) else None
