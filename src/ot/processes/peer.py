"""Who is at the other end of a socket: a process of this user, and whether a person at a terminal uses it."""

from __future__ import annotations

import errno
import os
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ot.relay.place import confinement
from ot.relay.reach import find_peer

SHELLS = frozenset(("ash", "bash", "dash", "fish", "ksh", "nu", "pwsh", "sh", "tcsh", "zsh"))
WRAPPERS = SHELLS | {"env", "npm", "npx", "uv", "uvx"}
"""Programs that clients start servers through: the client is the process above them."""
SHARED = "/ot/daemon/__main__.py"
REAPERS = frozenset(("init", "systemd"))
"""Parents of services, and of what has lost its own: a person's terminal is below them, too."""
UNCONFINED = ("Seccomp:\t0", "NoNewPrivs:\t0")
MOST_ANCESTORS = 1000


class ClientRefused(Exception):
    """The client is not served here; its relay serves it alone."""


class ServerRetires(ClientRefused):
    """The client is not served by this server any more; its relay tries again, and finds another."""


def require_own_peer(client: socket.socket) -> None:
    """Check that the process at the other end belongs to this user and has the same limits as this process.

    A client in a sandbox confines its own server; this one, outside of it, would be a way out.

    Raises:
        ClientRefused: It is somebody else's, is confined otherwise, or has gone.
    """
    pid = own_peer(client)
    try:
        same = confinement(pid) == confinement("self")
    except OSError:
        raise ClientRefused("the client cannot be identified") from None
    if not same:
        raise ClientRefused("the client is confined differently from the shared server")


def own_peer(client: socket.socket) -> int:
    """Return the process at the other end, which belongs to this user.

    Raises:
        ClientRefused: It is somebody else's, or has gone.
    """
    try:
        pid, user = find_peer(client)
    except OSError:
        raise ClientRefused("the client cannot be identified") from None
    if user != os.getuid():
        raise ClientRefused("the client belongs to another user")
    return pid


def remove_dead_sockets(directory: str, ending: str) -> None:
    """Remove the sockets at which nobody listens: whoever did was killed."""
    for path in Path(directory).glob(f"*{ending}"):
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            if client.connect_ex(str(path)) == errno.ECONNREFUSED:
                path.unlink(missing_ok=True)


# ---------------------------------------------------------------- a person at a terminal


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What the kernel says of one process; ``began`` tells it from a later one with the same number."""

    pid: int
    name: str
    parent: int
    group: int
    session: int
    terminal: int
    foreground: int
    began: int

    @classmethod
    def read(cls, pid: int) -> ProcessFacts:
        """Return the facts of *pid*; raise OSError if there is no such process."""
        before, _, after = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")
        fields = after.split()
        parent, group, session, terminal, foreground = map(int, fields[1:6])
        name = before.partition("(")[2]
        return cls(pid, name, parent, group, session, terminal, foreground, int(fields[19]))


def can_tell_persons() -> bool:
    """Return whether this system tells enough of a process to know that a person uses it."""
    return Path("/proc/self/stat").exists()


def require_person(pid: int, began: int) -> None:
    """Check that a person uses process *pid* at a terminal, and that neither OneTool nor a client started it.

    Raises:
        ClientRefused: It is not, or it is no longer the process that *began* then.
    """
    try:
        peer = ProcessFacts.read(pid)
        if peer.began != began:
            raise ClientRefused("the process that connected has ended")
        require_terminal(peer)
        _require_unconfined(pid)
        ours = _processes_of_clients()
        for ancestor in _lineage(peer):
            if ancestor == os.getpid():
                raise ClientRefused("a process that OneTool started cannot answer")
            if ancestor in ours:
                raise ClientRefused("a process that a client of OneTool started cannot answer")
    except (OSError, ValueError):
        raise ClientRefused("the answering process cannot be identified") from None


def require_terminal(peer: ProcessFacts) -> None:
    """Check that *peer* reads from and writes to the terminal that controls it, in its foreground.

    Raises:
        ClientRefused: It does not.
        OSError: It has gone.
    """
    if not peer.terminal:
        raise ClientRefused("only a person at a terminal can answer: the process has no controlling terminal")
    if peer.group != peer.foreground:
        raise ClientRefused("only a person at a terminal can answer: the process is in its terminal's background")
    for fd in (0, 1):
        found = os.stat(f"/proc/{peer.pid}/fd/{fd}")  # noqa: PTH116 - a link of the kernel's
        if not stat.S_ISCHR(found.st_mode) or _kernel_number(found.st_rdev) != peer.terminal:
            raise ClientRefused("only a person at a terminal can answer: its input or output is something else")


def _kernel_number(device: int) -> int:
    """Return the number of a device as /proc writes it."""
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def _require_unconfined(pid: int) -> None:
    """Refuse a process in a sandbox that this one is not in: a person's terminal is in none, or in the same."""
    if confinement(pid) != confinement("self"):
        said = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        if not all(line in said for line in UNCONFINED):
            raise ClientRefused("a process in a sandbox cannot answer")


def _lineage(peer: ProcessFacts) -> Iterator[int]:
    """Yield *peer* and its ancestors."""
    pid = peer.pid
    for _ in range(MOST_ANCESTORS):
        yield pid
        if pid <= 1:
            return
        pid = ProcessFacts.read(pid).parent
    raise ClientRefused("the answering process has too many ancestors")


def _processes_of_clients() -> set[int]:
    """Return the processes that have started a OneTool server, and the wrappers in between."""
    found: set[int] = set()
    # The shared server has lost the relay that started it: its parent is now the reaper of orphans.
    own = [] if sys.argv[0].endswith(SHARED) else [os.getpid()]
    for pid in [*own, *_serving_processes()]:
        with suppress(OSError, ValueError):
            parent = ProcessFacts.read(ProcessFacts.read(pid).parent)
            while parent.pid > 1 and parent.name not in REAPERS:
                # Somebody who types `onetool serve` into a shell is no client.
                if parent.name in SHELLS and parent.pid == parent.session and parent.terminal:
                    break
                found.add(parent.pid)
                if parent.name not in WRAPPERS:
                    break
                parent = ProcessFacts.read(parent.parent)
    return found


def _serving_processes() -> Iterator[int]:
    """Yield this user's processes that run ``onetool serve``."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.stat().st_uid == os.getuid():
                    words = Path(entry.path, "cmdline").read_bytes().split(b"\0")
                    if any(_serves(words[at : at + 2]) for at in (0, 1)):
                        yield int(entry.name)


def _serves(words: list[bytes]) -> bool:
    """Return whether these are the command and its first argument; an interpreter may stand before them."""
    return words[1:] == [b"serve"] and words[0].rpartition(b"/")[2] == b"onetool"
