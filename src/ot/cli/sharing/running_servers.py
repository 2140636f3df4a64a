"""RunningServer: a shared server of this user that answers, and how it is asked to end."""

from __future__ import annotations

import json
import os
import select
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ot.relay.header import CONTROL, WELCOME, Header
from ot.relay.place import Place, Unshared, find_place

ANSWER_SECONDS = 5.0
"""How long a server may take to say how it is."""
END_SECONDS = 90.0
"""How long it may take to end: open runs have their time, and then what they use is let go of."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """One of them, as it tells of itself; ``silent`` says why it does not."""

    socket: Path
    state: dict[str, Any]
    silent: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return it for a program."""
        return self.state or {"socket": str(self.socket), "silent": self.silent}


def running_servers() -> list[RunningServer]:
    """Return the shared servers of this user: more than one where clients differ in version or in confinement.

    Raises:
        Unshared: Nothing can be shared from here.
    """
    if os.name != "posix":
        raise Unshared("not on this system")
    return list(_find_servers(find_place()))


def stop(server: RunningServer, *, now: bool) -> None:
    """Wait until *server* has ended; its open runs may finish unless it is to end *now*.

    Raises:
        OSError: It does not answer, or does not end in time.
    """
    asked = (b"stop", b"now") if now else (b"stop",)
    with _connect(server.socket) as connection, _ending(server.state["pid"]):
        _ask(connection, find_place(), asked)
        connection.settimeout(END_SECONDS)
        while connection.recv(1024):
            pass


@contextmanager
def _ending(pid: int) -> Generator[None]:
    """Wait at the end of the block until the process has ended, where the system can tell."""
    if not hasattr(os, "pidfd_open"):  # macOS
        yield
        return
    process = os.pidfd_open(pid)
    try:
        yield
        if not select.select([process], [], [], END_SECONDS)[0]:
            raise TimeoutError(f"process {pid} has not ended within {END_SECONDS:g} s")
    finally:
        os.close(process)


def open_feed(path: Path) -> tuple[socket.socket, dict[str, Any]]:
    """Return a connection on which a shared server tells what its runs do, and what it tells of itself.

    Raises:
        OSError: It does not answer, or is of a version that cannot be watched.
        ValueError: What it says is malformed.
        Unshared: Nothing can be shared from here.
    """
    connection = _connect(path)
    try:
        return connection, _ask(connection, find_place(), (b"watch",))
    except BaseException:
        connection.close()
        raise


def _find_servers(place: Place) -> Iterator[RunningServer]:
    for path in sorted(Path(place.directory).glob("*.sock")):
        try:
            with _connect(path) as connection:
                yield RunningServer(path, _ask(connection, place))
        except ConnectionRefusedError:
            continue  # one that was killed has left it
        except (OSError, ValueError) as error:
            yield RunningServer(path, {}, str(error) or type(error).__name__)


def _connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ANSWER_SECONDS)
    try:
        connection.connect(str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _ask(connection: socket.socket, place: Place, words: tuple[bytes, ...] = ()) -> dict[str, Any]:
    """Ask the server about itself with *words*, and return its answer."""
    connection.sendall(Header(place.key, os.fsencode(os.sep), (CONTROL, *words), {}).pack())
    with connection.makefile("rb", buffering=0) as answer:  # the rest is the caller's
        first = answer.readline()
        if not first.startswith(WELCOME):
            raise ConnectionError(first[1:].decode(errors="replace").strip() or "it closed the connection")
        return json.loads(answer.readline())
