"""Starts Python programs as forks of one interpreter that has already imported what a server imports.

Imports take most of a server's start, and the tests start hundreds of servers. A test about the start itself, or about
what /proc tells of the server's command line and environment, asks for a cold one.

This file is both sides: ``start`` sends a request and four descriptors to the nursery, which is this file run as a
program; the last of them is a socket on which the process id comes, and later the exit code.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import resource
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

PRELOADED = (
    *("ot.cli.main", "ot.cli.serve", "ot.server.mcp_server", "ot.workspace", "ot.stats.sqlite_sink", "uvloop"),
    # What a server imports once it serves, before its first run.
    *("ot.server.connection", "ot.server.serve", "fastmcp.server.sessions", "anyio.streams.tls"),
    *("key_value.aio.adapters.pydantic", "key_value.aio.stores.memory"),
)
TEAM = ("onetool_team.cli.serve_http", "onetool_team.cli.worker", "onetool_team.background.worker_service")
"""In addition, for the processes of a team: a nursery of their own, so that nobody else's has these."""
REQUEST_BYTES = 1 << 17
START_SECONDS = 60.0
Request = dict[str, Any]


class WarmProcess:
    """A forked process, with as much of ``subprocess.Popen`` as the tests use."""

    def __init__(self, channel: socket.socket, stdin: int, stdout: int) -> None:
        """Take over the process that *channel* tells of."""
        self._channel = channel
        self._asking = threading.Lock()
        self.stdin = os.fdopen(stdin, "wb", buffering=0)
        self.stdout = os.fdopen(stdout, "rb", buffering=0)
        self.pid = self._told(START_SECONDS)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or nothing while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the process has ended."""
        with self._asking:
            if self.returncode is None:
                self.returncode = self._told(timeout)
                self._channel.close()
            return self.returncode

    def _told(self, timeout: float | None) -> int:
        if not select.select([self._channel], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a warm process", timeout or 0)
        return int(self._channel.recv(32))


def can_be_warm(command: Sequence[str]) -> bool:
    """Return whether *command* is a program of the interpreter that runs the tests."""
    program, *rest = command
    if program == sys.executable:
        return bool(rest) and (rest[0] == "-c" or not rest[0].startswith("-"))
    return Path(program) == Path(sys.executable).with_name("onetool")


def start(
    command: Sequence[str],
    *,
    cwd: Path | None,
    env: Mapping[str, str] | None,
    stderr: int,
    memory_bytes: int | None,
    also: tuple[str, ...] = (),
) -> WarmProcess:
    """Start *command* in a session of its own; *memory_bytes* bounds its address space.

    The modules *also* have been imported, too.
    """
    request: Request = {
        "command": command[1:] if command[0] == sys.executable else list(command),
        "cwd": str(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "memory_bytes": memory_bytes,
    }
    stdin, ours = os.pipe()
    theirs, stdout = os.pipe()
    channel, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        _ask_for(also, json.dumps(request).encode(), [stdin, stdout, stderr, far.fileno()])
    finally:
        os.close(stdin)
        os.close(stdout)
        far.close()
    return WarmProcess(channel, ours, theirs)


def _ask_for(also: tuple[str, ...], request: bytes, fds: Sequence[int]) -> None:
    try:
        socket.send_fds(_nursery(also), [request], fds)
    except BrokenPipeError:  # a test has killed it, or the system has, for want of memory
        _nursery(also).close()
        _nursery.cache_clear()
        socket.send_fds(_nursery(also), [request], fds)


@cache
def _nursery(also: tuple[str, ...]) -> socket.socket:
    """Return the way to the nursery, which is nobody's child, so that no test takes it for its own."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    subprocess.run([sys.executable, __file__, *also], stdin=theirs.fileno(), stdout=subprocess.DEVNULL, check=True)
    theirs.close()
    atexit.register(ours.close)
    return ours


# ---------------------------------------------------------------- the nursery


def main() -> None:
    """Fork until the tests end; in a fork, be the program that was asked for."""
    if os.fork():
        os._exit(0)  # whoever started this need not wait
    os.setsid()
    for name in (*PRELOADED, *sys.argv[1:]):
        importlib.import_module(name)
    assert threading.active_count() == 1, "a fork has one thread, so its parent may have one only"
    gc.collect()
    gc.freeze()
    request = _fork_on_request(socket.socket(fileno=os.dup(0)))
    if request:
        _be(request)


def _fork_on_request(control: socket.socket) -> Request | None:
    """Return what to be, in a fork; nothing, in the nursery, when the tests have ended."""
    born: dict[int, tuple[int, socket.socket]] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd != control.fileno():
                poll.unregister(fd)
                _bury(fd, *born.pop(fd))
                continue
            request, fds, _, _ = socket.recv_fds(control, REQUEST_BYTES, 4)
            if not request:
                return None
            *streams, channel = fds
            pid = os.fork()
            if not pid:
                _take_streams(streams, [control.detach(), channel, *_all_fds(born)])
                return json.loads(request)
            far = socket.socket(fileno=channel)
            far.send(str(pid).encode())
            pidfd = os.pidfd_open(pid)
            born[pidfd] = (pid, far)
            poll.register(pidfd, select.POLLIN)
            for stream in streams:
                os.close(stream)


def _all_fds(born: Mapping[int, tuple[int, socket.socket]]) -> list[int]:
    return [*born, *(channel.detach() for _, channel in born.values())]


def _bury(pidfd: int, pid: int, channel: socket.socket) -> None:
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(pidfd)
    with contextlib.suppress(OSError):  # nobody wants to know
        channel.send(str(code).encode())
    channel.close()


def _take_streams(streams: Sequence[int], others: Sequence[int]) -> None:
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for fd in (*streams, *others):
        os.close(fd)


def _be(request: Request) -> None:
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    tempfile.tempdir = None  # it may have been chosen by another environment
    if request["memory_bytes"]:
        resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"], request["memory_bytes"]))
    file, *rest = request["command"]
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[0:1] = ["" if file == "-c" else str(Path(file).parent), *paths]
    if file == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(rest[0], {"__name__": "__main__"})
    else:
        sys.argv = [file, *rest]
        runpy.run_path(file, run_name="__main__")


if __name__ == "__main__":
    main()
