"""ServerLock: the lock and the socket that make one process the shared server of its key."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from ot.processes.peer import remove_dead_sockets
from ot.relay.place import Place, build
from ot.relay.reach import READY

PREDECESSOR_SECONDS = 3.0
"""How long a server that can no longer be reached has to notice it and to let go."""
PAUSE_SECONDS = 0.02
BACKLOG = 256
LOCKED = (".start", ".life", ".log")
"""Files that are locked: while a server is started, while it takes clients, and while anything of it runs."""


class ServerLock:
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
    def begin(cls, place: Place) -> ServerLock | None:
        """Return the lock of a new server, or nothing where another one lives."""
        while True:
            lock = os.open(place.life, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if not _locked(lock, place):
                os.close(lock)
                return None
            if _is_named(lock, place.life):
                return cls(place, lock)
            os.close(lock)  # the server of another key has just removed it as a leftover

    def ready(self) -> None:
        """Let clients know that a welcome takes no longer than usual, and remove what dead servers have left."""
        self._note(READY)
        with suppress(OSError):
            _remove_leftovers(self.place)

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


def _is_named(file: int, path: str) -> bool:
    """Return whether *path* still leads to the open *file*."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove_leftovers(place: Place) -> None:
    """Remove what killed servers left: sockets of questions, and all files of those of other versions or keys."""
    remove_dead_sockets(place.directory, ".ask")
    found = [file for file in Path(place.directory).iterdir() if file.suffix in (*LOCKED, ".sock")]
    for base in {file.with_suffix("") for file in found} - {Path(place.life).with_suffix("")}:
        _remove_files(base)


def _remove_files(base: Path) -> None:
    """Remove the files of one server, unless it lives, is being started, or has retired and still has clients."""
    with ExitStack() as locks:
        for ending in LOCKED:
            # One that is missing is made: else a server could begin between this look and the removal.
            file = locks.enter_context(base.with_suffix(ending).open("ab"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
        for file in base.parent.glob(f"{base.name}.*"):
            file.unlink(missing_ok=True)


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
