"""The zygote: a warm interpreter in the jail that forks one child for each run and never reads a program itself."""

from __future__ import annotations

import _sitebuiltins
import builtins
import contextlib
import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
import types
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ot.runtime.engines.forked.jail import code, lockdown, without_fork_hooks
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.jail.child import serve_one, touch_ahead
from ot.runtime.engines.forked.jail.file_stubs import FileStubs
from ot.runtime.engines.forked.jail.kernel import LEAST_STACK, LIBC, Filter, landlock_version

MAX_REQUEST = 1 << 16
IDLE_SECONDS = 0.05
"""Without requests for so long, the modules that some programs import are loaded, one by one."""
COLD_SECONDS = 2.0
"""After so long they are loaded between requests, however close these follow each other."""
OFTEN_IMPORTED = (
    "asyncio", "datetime", "decimal", "collections", "itertools", "functools", "math", "re", "random", "statistics",
    "string", "textwrap", "hashlib", "base64", "csv", "io", "dataclasses", "typing", "enum", "contextlib", "heapq",
    "operator", "uuid", "html", "urllib.parse", "pathlib", "copy", "time", "calendar", "fractions", "bisect",
    "difflib", "unicodedata", "struct", "secrets", "traceback", "concurrent.futures.thread", "queue", "pprint",
    "zoneinfo", "json", "ast", "inspect", "linecache", "types", "abc", "numbers", "zlib", "_strptime",
)  # fmt: skip
REMEMBERED = 256
"""Children whose end is remembered, in case the server asks how it came about."""
REHEARSALS = 20
"""By then the interpreter has adapted its code to what it does, which each child would begin anew otherwise."""
M_ARENA_MAX, M_MMAP_THRESHOLD = -8, -3
LARGE_BYTES = 128 << 10
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
"""Threads do not survive a fork: libraries that compute with several must not start them before."""


class ProbeDied(Exception):
    """The self-test did not finish, so it says nothing about the jail."""


class Zygote:
    """Forks children on request; what holds for all of them is put on before the first."""

    def __init__(self, control: socket.socket, settings: Mapping[str, Any]) -> None:
        """Serve requests from *control*."""
        self._control = control
        self._jailed: bool = settings["jailed"]
        self._settings = settings
        self._files: FileStubs | None = None
        self._filter = Filter() if self._jailed else None
        self._most_threads: int | None = None
        self._base = 0
        self._to_load: list[str] | None = list(reversed(OFTEN_IMPORTED))
        self._ends: OrderedDict[int, int] = OrderedDict()
        """How the children ended that ended last."""

    def lock(self) -> dict[str, Any]:
        """Put the jail on, try it in a child, and return which layers hold."""
        if self._filter is None:
            return {"layers": {}, "user": "", "landlock": 0}
        self._files = FileStubs([*lockdown.SYSTEM_PATHS, *self._settings["read_paths"]])
        self._files.install()
        lockdown.empty_environment()
        shared = lockdown.most_threads_beside()  # counted now: later /proc cannot be read
        user = lockdown.lock_zygote(self._settings["read_paths"], self._settings["server"])
        own_user = os.getuid() >= lockdown.OWN_UIDS or self._settings["namespaces"]
        self._most_threads = lockdown.MAX_THREADS if own_user else shared
        import_packages(self._settings["read_paths"], self._settings["imports"])
        return {"layers": self._run_probe(), "user": user, "landlock": landlock_version()}

    def _run_probe(self) -> dict[str, list[str]]:
        self.freeze()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            self._probe(theirs.fileno())
        theirs.close()
        with ours:
            report = b"".join(iter(lambda: ours.recv(MAX_REQUEST), b""))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if not report:
            raise ProbeDied(f"the process of the self-test died (exit code {code})")
        return json.loads(report)

    def _probe(self, fd: int) -> None:
        try:
            fd = lockdown.close_all_but(fd)
            self._lock_child(Room(64 << 20, 5))
            report: dict[str, list[str]] = lockdown.probe()
        except (OSError, lockdown.NotLocked) as error:
            report = {"seccomp": [f"{type(error).__name__}: {error}"]}
        os.write(fd, json.dumps(report).encode())
        os._exit(0)

    def _lock_child(self, limits: Room) -> None:
        if self._filter is None:
            lockdown.die_with_parent()
        else:
            lockdown.lock_child(limits, self._filter, self._base, self._most_threads)

    def freeze(self) -> None:
        gc.collect()
        gc.freeze()
        # While it is found out there is no memory for anything else, such as to reap.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        self._base = lockdown.address_space() if self._jailed else 0
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])

    def _reap(self, *_: object) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                self._ends[ended[0]] = ended[1]
        while len(self._ends) > REMEMBERED:
            self._ends.popitem(last=False)  # in one step: another child may end, and this begin again, between two

    def serve(self) -> None:
        """Answer requests until the server goes away; while it asks for nothing, get warmer."""
        signal.signal(signal.SIGCHLD, self._reap)
        late = time.monotonic() + COLD_SECONDS
        idle: float | None = IDLE_SECONDS
        while True:
            self._control.settimeout(idle)
            try:
                request = self._control.recv(MAX_REQUEST)
            except (TimeoutError, BlockingIOError):
                idle = self._get_warmer()
                continue
            if not request:
                return
            self._answer(json.loads(request))
            idle = None if self._to_load is None else IDLE_SECONDS if time.monotonic() < late else 0.0

    def _get_warmer(self) -> float | None:
        """Import one more module that programs often import; return how long to wait before the next."""
        if self._to_load:
            with without_fork_hooks() if self._jailed else contextlib.nullcontext():
                importlib.import_module(self._to_load.pop())
            return 0.0
        if self._to_load is not None:
            self._to_load = None
            code.accept_values()
            if self._files:
                self._files.load()
            for _ in range(REHEARSALS):
                touch_ahead()
            make_immortal()
            self.freeze()
            # The children that wait have none of it yet.
            self._control.send(json.dumps({"warm": True}).encode())
        return None

    def _answer(self, request: Mapping[str, Any]) -> None:
        if "how" not in request:
            return self._fork(request)
        self._reap()
        number = request["how"]
        self._control.send(json.dumps({"how": number, "status": self._ends.get(number)}).encode())
        return None

    def _fork(self, request: Mapping[str, Any]) -> None:
        limits = Room(request["memory_bytes"], request["cpu_seconds"])
        ours, theirs = socket.socketpair()
        with ours, theirs:
            try:
                pid = os.fork()
                if pid == 0:
                    self._be_child(theirs.detach(), limits)
                pidfd = os.pidfd_open(pid)
            except OSError as error:
                self._control.send(json.dumps({"failed": str(error)}).encode())
                return
            socket.send_fds(self._control, [json.dumps({"pid": pid}).encode()], [ours.fileno(), pidfd])
            os.close(pidfd)

    def _be_child(self, fd: int, limits: Room) -> None:
        try:
            self._control.detach()
            fd = lockdown.close_all_but(fd)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if self._jailed:
                lockdown.open_own_nothing()
            self._lock_child(limits)
            serve_one(fd, self._files)
        finally:
            # Whatever happened: a child never goes back to the zygote's own work.
            os._exit(1)


def main(control_fd: int) -> None:
    """Be the zygote of the server at the other end of *control_fd*."""
    control = socket.socket(fileno=control_fd)
    settings = json.loads(control.recv(MAX_REQUEST))
    os.dup2(1, 2)  # both lead nowhere; the server reads standard error only until here
    os.closerange(3, control_fd)
    os.closerange(control_fd + 1, 65536)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _tune_memory()
    try:
        zygote = Zygote(control, settings)
        report = zygote.lock()
    except (OSError, KeyError, ValueError, lockdown.NotLocked) as error:
        control.send(json.dumps({"failed": f"{type(error).__name__}: {error}"}).encode())
        return
    except ProbeDied as error:
        control.send(json.dumps({"failed": str(error), "killed": True}).encode())
        return
    for name in ("exit", "quit"):  # as Python's own start would have done, for programs that end so
        setattr(builtins, name, _sitebuiltins.Quitter(name, ""))
    # No program may import the parts of the jail, or take them for the pack that is called ``ot``.
    for name in [name for name in sys.modules if name.partition(".")[0] in ("ot", "ot_sdk")]:
        del sys.modules[name]
    zygote.freeze()
    control.send(json.dumps(report).encode())
    zygote.serve()
    os._exit(0)  # an interpreter whose objects never die has nothing to tidy up


def import_packages(paths: Sequence[str], names: Sequence[str]) -> None:
    """Make the packages at *paths* importable and import *names* ahead, with no more threads than this one."""
    sys.path.extend(paths)
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    for name in names:
        # A distribution may be imported under another name than its own, and its code may fail as it likes.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    for variable in ONE_THREAD:
        del os.environ[variable]


def _tune_memory() -> None:
    """Keep threads cheap in addresses: one heap for all, and stacks of half a mebibyte.

    What is large is mapped by itself, always: taken from the heap, a child would have to write all of it.
    """
    import threading  # noqa: PLC0415 - beside what it is for

    threading.stack_size(LEAST_STACK)
    LIBC.mallopt(M_ARENA_MAX, 1)
    LIBC.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


# ---------------------------------------------------------------- objects that the zygote keeps for ever

ALIVE = (types.FrameType, types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, types.TracebackType)
"""These come and go: what they hold now is theirs to give back."""
Count = ctypes.c_uint32


def make_immortal() -> int:
    """Make whatever can be reached immortal, as None is, and return how much that was.

    A child that only looks at an object would else write its reference count, and so copy a whole page of the zygote's.
    An interpreter that counts in another way is left as it is.
    """
    count = Count.from_address(id(None)).value
    if count != sys.getrefcount(None) or sys.byteorder != "little":
        return 0
    addresses = _reachable()
    for address in addresses:
        Count.from_address(address).value = count
    return len(addresses)


def _reachable() -> set[int]:
    found: set[int] = set()
    left = gc.get_objects()
    ours = {id(found), id(left)}
    while left:
        thing = left.pop()
        if id(thing) in found or id(thing) in ours or isinstance(thing, ALIVE):
            continue
        found.add(id(thing))
        left.extend(gc.get_referents(thing))
    return found
