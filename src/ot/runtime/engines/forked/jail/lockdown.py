"""Puts the layers of the jail on, once for the zygote and on each child the rest, and tries which of them hold."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import resource
import signal
import socket
import sys
import sysconfig
from collections.abc import Callable, Sequence

from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.jail.kernel import READ_DIR, READ_FILE, WRITE_FILE, Filter, Rules, prctl, syscall

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITY_VERSION_3 = 0x20080522
OWN_UIDS = 0x7FFE0000
"""From here on users are taken that nobody is: one for each server, so that its children share nothing with others."""
NOBODY = 65534
PAGE = mmap.PAGESIZE
MAX_FILES = 64
MAX_THREADS = 512
"""Of all children together, where they run as a user of their own."""
MAX_THREADS_BESIDE = 4096
"""Of all children together, beyond what the user has already, where they share it with other programs."""
SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")
SYSTEM_PATHS = (sysconfig.get_path("stdlib"), *SYSTEM_LIBRARIES)
NOT_STANDARD = frozenset({"site-packages", "dist-packages"})


class NotLocked(Exception):
    """A layer that was put on does not hold."""


def readable_paths(more: Sequence[str]) -> list[str]:
    """Return the paths that an interpreter needs to import its standard library, and *more*."""
    standard = sysconfig.get_path("stdlib")
    inside = [os.path.join(standard, name) for name in os.listdir(standard) if name not in NOT_STANDARD]  # noqa: PTH118, PTH208 - as in landlock
    return [*inside, *SYSTEM_LIBRARIES, *more]


def lock_zygote(more_paths: Sequence[str], server: int) -> str:
    """Put on what holds for the zygote and every child of its; return as which user they run."""
    rules = Rules()
    for path in readable_paths(more_paths):
        rules.allow(path, READ_FILE | READ_DIR)
    # Directories can be listed whose files cannot all be read.
    for path in (sysconfig.get_path("stdlib"), *more_paths):
        rules.allow(path, READ_DIR)
    rules.allow(os.devnull, READ_FILE | WRITE_FILE)
    prctl(PR_SET_DUMPABLE, 0)
    user = leave_root(server)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    # A change of the user makes a process dumpable again.
    prctl(PR_SET_DUMPABLE, 0)
    rules.put_on()
    return user


def leave_root(server: int) -> str:
    """Become a user of the *server*'s own where that can be, and give up every capability; return what was done."""
    if os.geteuid() != 0:
        return f"uid {os.getuid()}, no capabilities"
    own = _reachable_uid(server)
    if own:
        os.setgroups([])
        os.setresgid(own, own, own)
        os.setresuid(own, own, own)
    _drop_capabilities()
    return f"uid {own}, no capabilities" if own else "uid 0, no capabilities: no other user can read the interpreter"


def _reachable_uid(server: int) -> int:
    """Return a user that this process can become and that can still import the standard library, or 0."""
    for uid in (OWN_UIDS + server % 0x10000, NOBODY):
        with contextlib.suppress(OSError):
            os.setresuid(uid, uid, 0)
            try:
                os.listdir(sysconfig.get_path("stdlib"))  # noqa: PTH208 - as above
                return uid
            except OSError:
                continue
            finally:
                os.setresuid(0, 0, 0)
    return 0


def _drop_capabilities() -> None:
    for capability in range(64):
        with contextlib.suppress(OSError):  # one that this kernel does not know, or that we may not even drop
            prctl(PR_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    none = (ctypes.c_uint32 * 6)()
    syscall(CAPSET[os.uname().machine], ctypes.addressof(header), ctypes.addressof(none))


def address_space() -> int:
    """Return the size of this process's address space in bytes, found without /proc."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    low, high = 0, (1 << 47) if before[1] == resource.RLIM_INFINITY else before[1]
    try:
        while high - low > PAGE:
            middle = (low + high) // 2 // PAGE * PAGE
            resource.setrlimit(resource.RLIMIT_AS, (middle, before[1]))
            low, high = (low, middle) if _can_map() else (middle, high)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    return high


def _can_map() -> bool:
    try:
        mmap.mmap(-1, PAGE).close()
    except (OSError, MemoryError, ValueError):
        return False
    return True


def most_threads_beside() -> int | None:
    """Return how many threads this user may have, including those of other programs; None if unknown.

    Ask before the jail is on. The kernel never counts those of root: a server that stays root has its control group.
    """
    try:
        processes = [f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - as above
    except OSError:
        return None
    return sum(map(_threads, processes)) + MAX_THREADS_BESIDE if processes else None


def _threads(process: str) -> int:
    """Return how many threads a process has, if it is this user's."""
    try:
        mine = os.stat(process).st_uid == os.getuid()  # noqa: PTH116 - as above
        return os.stat(f"{process}/task").st_nlink - 2 if mine else 0  # noqa: PTH116 - as above
    except OSError:  # it has ended
        return 0


def lock_child(limits: Room, filter_: Filter, base_bytes: int, threads: int | None) -> None:
    """Put on the rest, before any program is read.

    Raises:
        OSError: A layer cannot be put on.
        NotLocked: It is on, and does not hold.
    """
    die_with_parent()
    for kind, most in _limits(limits, base_bytes, threads):
        allowed = resource.getrlimit(kind)[1]
        most = most if allowed == resource.RLIM_INFINITY else min(most, allowed)
        resource.setrlimit(kind, (most, most))
    filter_.put_on()
    require_locked()


def die_with_parent() -> None:
    """Let the kernel end this process with the zygote."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _limits(limits: Room, base_bytes: int, threads: int | None) -> list[tuple[int, int]]:
    # The server's own clock ends a run to the fraction of a second; this one holds if it does not.
    found = [
        (resource.RLIMIT_AS, base_bytes + limits.memory_bytes),
        (resource.RLIMIT_CPU, int(limits.cpu_seconds) + 2),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, MAX_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ]
    return found if threads is None else [*found, (resource.RLIMIT_NPROC, threads)]


def require_locked() -> None:
    """Check that everything a program must not do is impossible.

    Raises:
        NotLocked: It can.
    """
    for name, attempt in (
        ("files", lambda: os.close(os.open("/", os.O_RDONLY))),
        ("sockets", lambda: socket.socket().close()),
        ("processes", fork_and_leave),
    ):
        try:
            attempt()
        except OSError:
            continue
        raise NotLocked(f"{name} can be reached from inside the jail")


def fork_and_leave() -> None:
    """Start a process that ends at once."""
    if os.fork() == 0:
        os._exit(0)


def close_all_but(fd: int) -> int:
    """Close every descriptor but 0 to 2 and *fd*, which becomes number 3."""
    if fd != 3:
        os.dup2(fd, 3, inheritable=False)
    os.closerange(4, 65536)
    return 3


def open_own_nothing() -> None:
    """Let 0 to 2 lead nowhere by a description of this process alone: siblings could read the flags of a shared one."""
    fd = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(fd, number)
    os.close(fd)


def empty_environment() -> None:
    """Forget the environment, and where packages that are not the standard library's are."""
    os.environ.clear()
    sys.path[:] = [path for path in sys.path if not NOT_STANDARD & set(path.split("/"))]
    sys.argv[:] = [""]


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
        "environment": [f"read ${name}" for name in os.environ],
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
