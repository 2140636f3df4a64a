"""What a jailed process tries at the start of a server, to tell which layers really hold."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import socket
from collections.abc import Callable

from ot.runtime.engines.forked.jail.kernel import syscall
from ot.runtime.engines.forked.jail.lockdown import fork_and_leave

Attempt = Callable[[], object]
HOST_FILE = "/etc/passwd"
"""A file that every machine has, and that everybody may read where there is no jail."""
PTRACE = {"x86_64": 101, "aarch64": 117}
UNSHARE = {"x86_64": 272, "aarch64": 97}
NEW_USER = 0x10000000


def probe() -> dict[str, list[str]]:
    """Return, by layer, what it should have stopped and did not; an empty list is a layer that holds."""
    return {
        "seccomp": _possible(SYSTEM_CALLS),
        "landlock": _possible(FILES),
        "rlimits": _possible(LIMITS),
        "environment": _environment(),
        "namespaces": _possible({"see the host's files": lambda: os.stat(HOST_FILE)}),  # noqa: PTH116 - pathlib costs a start
    }


def _possible(attempts: dict[str, Attempt]) -> list[str]:
    return [name for name, attempt in attempts.items() if _succeeds(attempt)]


def _succeeds(attempt: Attempt) -> bool:
    try:
        attempt()
    except (OSError, MemoryError, ValueError):
        return False
    return True


def _reach(path: str) -> None:
    os.close(os.open(path, os.O_RDONLY))


def _make(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.unlink(path)  # noqa: PTH108 - as above


def _abstract_socket() -> None:
    with socket.socket(socket.AF_UNIX) as caller, contextlib.suppress(ConnectionError):
        caller.connect("\0onetool")


SYSTEM_CALLS: dict[str, Attempt] = {
    "start a process": fork_and_leave,
    "execute a file": lambda: os.execv("/bin/true", ["true"]),
    "open a socket": lambda: socket.socket(socket.AF_INET).close(),
    "reach an abstract socket": _abstract_socket,
    "signal its parent": lambda: os.kill(os.getppid(), 0),
    "write a file": lambda: _make("/tmp/onetool-probe"),
    "make a namespace": lambda: syscall(UNSHARE[os.uname().machine], NEW_USER),
    "trace a process": lambda: syscall(PTRACE[os.uname().machine], 0, 0, 0, 0),
    "raise its limits": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
}
FILES: dict[str, Attempt] = {
    "read the host's files": lambda: _reach(HOST_FILE),
    "list the root": lambda: _reach("/"),
    "read /proc": lambda: _reach("/proc/self/maps"),
    "list /tmp": lambda: _reach("/tmp"),
    "list /dev": lambda: _reach("/dev"),
}
LIMITS: dict[str, Attempt] = {
    "use all memory": lambda: ctypes.create_string_buffer(1 << 40),
    "open many files": lambda: [os.dup(0) for _ in range(200)],
}


def _environment() -> list[str]:
    return [f"read ${name}" for name in os.environ]
