"""What Python's own library does not ask of the kernel: system calls by number, Landlock, and the seccomp filter.

The filter is an allow-list, assembled here so that no system package is needed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
from collections.abc import Mapping, Sequence

from ot.runtime.engines.forked.jail.syscalls import ALLOWED, AUDIT_ARCH, CHECKED, number

LIBC = ctypes.CDLL(None, use_errno=True)
"""The C library; bound before any program could change what the name means."""


def prctl(option: int, *arguments: int) -> int:
    """Return what prctl() returns; raise OSError if it failed."""
    given = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    return _check(LIBC.prctl(ctypes.c_int(option), *given))


def syscall(number: int, *arguments: int | None) -> int:
    """Return what the system call *number* returns; its arguments are numbers and addresses.

    Raises:
        OSError: It failed.
    """
    LIBC.syscall.restype = ctypes.c_long
    given = [ctypes.c_ulong(argument or 0) for argument in arguments]
    return _check(LIBC.syscall(ctypes.c_long(number), *given))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every machine
ASK_VERSION = 1
PATH_BENEATH = 1

WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""All rights on files that a version of Landlock knows; what is handled and not granted is refused."""
TCP_RIGHTS = 0x3
SCOPES = 0x3


def landlock_version() -> int:
    """Return the kernel's version of Landlock, 0 where there is none."""
    try:
        return syscall(CREATE_RULESET, 0, 0, ASK_VERSION)
    except OSError:
        return 0


class Rules:
    """The rules of one jail, gathered while the paths can still be opened."""

    def __init__(self) -> None:
        """Begin with rules that refuse everything; raise OSError if the kernel has no Landlock."""
        found = landlock_version()
        attributes = [FILE_RIGHTS[min(max(found, 1), 5)]]
        attributes += [TCP_RIGHTS] if found >= 4 else []
        attributes += [SCOPES] if found >= 6 else []
        packed = struct.pack(f"={len(attributes)}Q", *attributes)
        buffer = ctypes.create_string_buffer(packed, len(packed))
        self._rules = syscall(CREATE_RULESET, ctypes.addressof(buffer), len(packed), 0)

    def allow(self, path: str, rights: int) -> None:
        """Grant *rights* on the file *path*, or on whatever is below it; one that is not there needs none."""
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                rights = rights if os.path.isdir(path) else rights & ~READ_DIR or READ_FILE  # noqa: PTH112 - pathlib costs the zygote a start
                packed = struct.pack("=Qi", rights, fd)
                buffer = ctypes.create_string_buffer(packed, len(packed))
                syscall(ADD_RULE, self._rules, PATH_BENEATH, ctypes.addressof(buffer), 0)
            finally:
                os.close(fd)

    def put_on(self) -> None:
        """Bind this process, and what it starts, to the rules for ever."""
        syscall(RESTRICT_SELF, self._rules, 0)
        os.close(self._rules)


PR_SET_SECCOMP = 22
MODE_FILTER = 2

ALLOW = 0x7FFF0000
KILL = 0x80000000
ERRNO = 0x00050000

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
EQUALS = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

NUMBER, ARCH, ARGUMENTS = 0, 4, 16
X32 = 0x40000000
WRITES = 0o3 | 0o100 | 0o1000  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
MAP_STACK = 0x20000
LEAST_STACK = 512 << 10
THREAD = 0x00010000
THREAD_FLAGS = 0x007D0F00
"""What the C libraries give to clone() for a thread; a bit beside these is refused."""
FIONBIO, FIOCLEX, FIONCLEX, FIONREAD = 0x5421, 0x5451, 0x5450, 0x541B
FCNTL = (0, 1, 2, 3, 4, 1030)
"""Duplicate, and get or set the flags; not F_SETOWN, which sends signals to others."""
PR_SET_NAME = 15
AF_UNIX = 1
SOL_SOCKET = 1
SOCKET_FACTS = (3, 4, 38, 39)
"""Type, pending error, protocol and family, which Python asks for; others tell of the peer, or give a pidfd of it."""
STREAM_TYPES = 1 | 0o4000 | 0o2000000
"""SOCK_STREAM, which may be non-blocking and closed on exec."""

Step = tuple[int, int, int, int]
Piece = tuple[int, Sequence[Step]]


def assemble(machine: str) -> bytes:
    """Return the filter for *machine*; what it does not name fails with EPERM.

    Raises:
        KeyError: There is no filter for such a machine.
    """
    found: dict[int, Sequence[Step]] = {X32: [(RETURN, 0, 0, KILL)]} if machine == "x86_64" else {}
    for name, block in {**{allowed: [_allow()] for allowed in ALLOWED}, **_checks()}.items():
        if (call := number(name, machine)) is not None:
            found[call] = block
    steps = [*_require(ARCH, AUDIT_ARCH[machine], KILL), (LOAD, 0, 0, NUMBER), *_search(_pieces(found))]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _pieces(blocks: Mapping[int, Sequence[Step]]) -> list[Piece]:
    """Return where each answer begins, in the order of the numbers; any number between is refused."""
    pieces: list[Piece] = []
    for call in sorted({0, *blocks, *(call + 1 for call in blocks if call != X32)}):
        block = blocks.get(call, [_refuse()])
        if not pieces or pieces[-1][1] != block:
            pieces.append((call, block))
    return pieces


def _search(pieces: Sequence[Piece]) -> list[Step]:
    """Return the steps that halve the pieces until one is left.

    When a filter is put on, the kernel walks it for every number there is: in a row this took most of a child's start.
    """
    if len(pieces) == 1:
        return list(pieces[0][1])
    middle = len(pieces) // 2
    low, high = _search(pieces[:middle]), _search(pieces[middle:])
    return [(AT_LEAST, len(low), 0, pieces[middle][0]), *low, *high]


def _checks() -> Mapping[str, Sequence[Step]]:
    checks = {
        "openat": [_load(2), (ANY_BIT, 0, 1, WRITES), _refuse(), _allow()],
        # The stack of a thread: were it small, address space would bound the number of threads too late.
        "mmap": [
            _load(3), (ANY_BIT, 1, 0, MAP_STACK), _allow(), (LOAD, 0, 0, ARGUMENTS + 12), (EQUALS, 1, 0, 0), _allow(),
            _load(1), (AT_LEAST, 0, 1, LEAST_STACK), _allow(), _refuse(),
        ],
        "clone": [
            _load(0), (ANY_BIT, 0, 1, 0xFFFFFFFF & ~THREAD_FLAGS), _refuse(), (ANY_BIT, 0, 1, THREAD), _allow(),
            _refuse(),
        ],
        # The C library falls back on clone(), whose flags can be read here.
        "clone3": [(RETURN, 0, 0, ERRNO | errno.ENOSYS)],
        "ioctl": _one_of(1, FIONBIO, FIOCLEX, FIONCLEX, FIONREAD),
        "fcntl": _one_of(1, *FCNTL),
        "prctl": _one_of(0, PR_SET_NAME),
        # A datagram could be sent to any socket that has a name, whoever its peer is.
        "socketpair": [
            *_require(ARGUMENTS, AF_UNIX), _load(1), (ANY_BIT, 0, 1, 0xFFFFFFFF & ~STREAM_TYPES), _refuse(), _allow(),
        ],
        "sendto": [*_require(ARGUMENTS + 32, 0), *_require(ARGUMENTS + 36, 0), _allow()],
        "getsockopt": [*_require(ARGUMENTS + 8, SOL_SOCKET), *_one_of(2, *SOCKET_FACTS)],
        # Limits may be read, of this process only.
        "prlimit64": [
            *_require(ARGUMENTS, 0), *_require(ARGUMENTS + 16, 0), *_require(ARGUMENTS + 20, 0), _allow(),
        ],
    }  # fmt: skip
    assert checks.keys() == CHECKED.keys()
    return checks


def _load(argument: int) -> Step:
    return (LOAD, 0, 0, ARGUMENTS + 8 * argument)


def _allow() -> Step:
    return (RETURN, 0, 0, ALLOW)


def _refuse() -> Step:
    return (RETURN, 0, 0, ERRNO | errno.EPERM)


def _one_of(argument: int, *values: int) -> list[Step]:
    found = [_load(argument)]
    for value in values:
        found += [(EQUALS, 0, 1, value), _allow()]
    return [*found, _refuse()]


def _require(place: int, value: int, otherwise: int = ERRNO | errno.EPERM) -> list[Step]:
    return [(LOAD, 0, 0, place), (EQUALS, 1, 0, value), (RETURN, 0, 0, otherwise)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))


class Filter:
    """A filter in memory, ready to be put on by each child."""

    def __init__(self) -> None:
        """Assemble the filter of this machine."""
        code = assemble(os.uname().machine)
        self._steps = ctypes.create_string_buffer(code, len(code))
        self._program = _Program(len(code) // 8, ctypes.addressof(self._steps))

    def put_on(self) -> None:
        """Bind this thread, and what it starts, to the filter for ever.

        Raises:
            OSError: The kernel has no seccomp.
        """
        prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.addressof(self._program))
