"""Reaches the shared server: connects to the one that runs, or starts it, one starter at a time."""

from __future__ import annotations

import _socket
import fcntl
import os
import select
import sys
import time
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_STREAM, SOL_SOCKET, socket

from ot.relay.header import NOT_NOW, WELCOME, Header
from ot.relay.place import PROCESS_WIDE, Hangs, NotNow, Place, Unshared, source_root

WELCOME_SECONDS = 2.0
LOCK_SECONDS = 3.0
"""How long another client may hold the lock of the start without the server being there."""
START_SECONDS = 20.0
PAUSE_SECONDS = 0.02
MAC_LEVEL, MAC_CREDENTIALS, MAC_PID, MAC_CREDENTIAL_BYTES = 0, 1, 2, 76
"""SOL_LOCAL, LOCAL_PEERCRED and LOCAL_PEERPID, which Python does not name."""
READY = b"ready"
"""In the file of the server's life, once it answers; before that it is starting, and a welcome may take longer."""


def reach_daemon(place: Place, header: Header) -> socket:
    """Return a connection on which the daemon has said welcome.

    Raises:
        NotNow: There is none and none could be started, or it ended meanwhile; it may work a moment later.
        Unshared: It refuses, or cannot be used from here.
    """
    connection = _connect(place) or _start_and_connect(place)
    _greet(connection, place, header)
    return connection


def join_daemon(place: Place, header: Header) -> socket | None:
    """Return a connection to the daemon that runs, on which it has said welcome; none is started.

    Raises:
        Unshared: It refuses.
    """
    connection = _connect(place)
    if connection:
        _greet(connection, place, header)
    return connection


def join_or_summon_daemon(place: Place, header: Header) -> socket | None:
    """Return a connection as above; where no daemon is ready, see to it that there is one soon, and wait for nothing.

    Raises:
        Unshared: As for ``reach_daemon``.
    """
    connection = _connect(place)
    if connection and not _is_starting(place):
        _greet(connection, place, header)
        return connection
    if connection:
        connection.close()
        return None
    lock = _open_lock(place)
    try:
        if _is_locked(lock, place):
            os.close(_spawn(place))
    finally:
        os.close(lock)
    return None


def _greet(connection: socket, place: Place, header: Header) -> None:
    try:
        _shake_hands(connection, place, header.pack())
    except BaseException:
        connection.close()
        raise


def _connect(place: Place) -> socket | None:
    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.connect(place.socket)
    except (ConnectionError, FileNotFoundError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise Unshared(f"{place.socket}: {error.strerror}") from None
    # The header has the client's whole environment. With the XDG_RUNTIME_DIR of another user, as su and sudo leave it,
    # that user can put a directory with a socket of theirs in the place of the one that was looked at.
    if find_peer(connection)[1] != os.getuid():
        connection.close()
        raise Unshared(f"{place.socket} belongs to another user")
    return connection


def find_peer(connection: socket) -> tuple[int, int]:
    """Return the process and the user at the other end; raise OSError if the system does not tell."""
    if sys.platform == "darwin":
        pid = connection.getsockopt(MAC_LEVEL, MAC_PID)
        return pid, _number(connection.getsockopt(MAC_LEVEL, MAC_CREDENTIALS, MAC_CREDENTIAL_BYTES)[4:8])
    told = connection.getsockopt(SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return _number(told[:4]), _number(told[4:8])


def _number(data: bytes) -> int:
    return int.from_bytes(data, sys.byteorder)


def _start_and_connect(place: Place) -> socket:
    """Return a connection to a daemon that this client or another one starts now."""
    lock = _open_lock(place)
    try:
        connection = _lock_or_connect(place, lock)
        if connection is None:
            _start(place)
            connection = _connect(place)
    finally:
        os.close(lock)
    if connection is None:
        raise NotNow("the shared server did not start")
    return connection


def _open_lock(place: Place) -> int:
    try:
        return os.open(place.start, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unshared(f"{place.start}: {error.strerror}") from None


def _is_locked(lock: int, place: Place) -> bool:
    """Return whether this client is the one that may start the daemon."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise Unshared(f"{place.start}: {error.strerror}") from None
    return True


def _lock_or_connect(place: Place, lock: int) -> socket | None:
    """Return nothing when this client is to start the daemon, else a connection to the one that another started."""
    until = time.monotonic() + LOCK_SECONDS
    while not _is_locked(lock, place):
        if connection := _connect(place):
            return connection
        if time.monotonic() > until:
            raise NotNow("another client has been starting the shared server for too long")
        time.sleep(PAUSE_SECONDS)
    return _connect(place)


def _start(place: Place) -> None:
    """Start the daemon, and return when it listens or has failed to."""
    told = _spawn(place)
    in_time = select.select([told], [], [], START_SECONDS)[0]
    os.close(told)
    if not in_time:
        raise NotNow("the shared server takes too long to start")


def _spawn(place: Place) -> int:
    """Start the daemon, and return where it tells that it listens; the end of that tells that it has failed to."""
    told, tell = os.pipe()
    streams = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, tell, 1)]
    # The client's own environment belongs to its connection; a daemon that had it would give it to all others.
    names = ("HOME", "XDG_RUNTIME_DIR", "TMPDIR", *PROCESS_WIDE)
    kept = {name: os.environ[name] for name in names if name in os.environ}
    command = [sys.executable, "-I", f"{source_root()}/ot/daemon/__main__.py", place.socket]
    try:
        os.waitpid(os.posix_spawn(sys.executable, command, kept, file_actions=streams), 0)  # it leaves a grandchild
    except OSError as error:  # another version is being installed
        os.close(told)
        raise NotNow(f"{sys.executable} cannot be started: {error.strerror}") from None
    finally:
        os.close(tell)
    return told


def _shake_hands(connection: socket, place: Place, header: bytes) -> None:
    begun = time.monotonic()
    until, answer = begun + WELCOME_SECONDS, b""
    while not answer.endswith(b"\n"):
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLOUT if header else select.POLLIN)
        if not poll.poll(PAUSE_SECONDS * 1000):
            now = time.monotonic()
            if now < begun + START_SECONDS and _is_starting(place):
                until = now + WELCOME_SECONDS
            if now > until:
                raise Hangs("the shared server does not answer")
            continue
        try:
            if header:
                header = header[connection.send(header, MSG_DONTWAIT) :]
            else:
                answer += _receive_byte(connection)
        except OSError as error:
            raise NotNow(f"the shared server has gone: {error.strerror}") from None
    if not answer.startswith(WELCOME):
        kind = NotNow if answer.startswith(NOT_NOW) else Unshared
        raise kind(f"the shared server refuses: {answer[1:].decode(errors='replace').strip()}")


def _receive_byte(connection: socket) -> bytes:
    """Return one byte: what follows the daemon's one line is for the client."""
    if not (byte := connection.recv(1, MSG_DONTWAIT)):
        raise ConnectionResetError(0, "it closed the connection")
    return byte


def _is_starting(place: Place) -> bool:
    try:
        with open(place.life, "rb") as life:
            return READY not in life.read(64)
    except OSError:
        return False
