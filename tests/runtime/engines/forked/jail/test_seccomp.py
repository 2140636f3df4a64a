"""The system call filter, run by a small interpreter of its own language."""

from __future__ import annotations

import errno
import itertools
import struct

import pytest

from ot.runtime.engines.forked.jail.kernel import ALLOW, ERRNO, KILL, THREAD_FLAGS, assemble
from ot.runtime.engines.forked.jail.syscalls import ALLOWED, AUDIT_ARCH, CHECKED, number

MACHINES = sorted(AUDIT_ARCH)
REFUSED = ERRNO | errno.EPERM
FORBIDDEN = {
    # name: (x86_64, aarch64)
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "vfork": (58, None),
    "kill": (62, 129),
    "tgkill": (234, 131),
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "io_uring_setup": (425, 425),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "open": (2, None),
    "openat2": (437, 437),
    "creat": (85, None),
    "unlinkat": (263, 35),
    "symlinkat": (266, 36),
    "readlinkat": (267, 78),
    "chdir": (80, 49),
    "setrlimit": (160, 164),
    "setuid": (105, 146),
    "shmget": (29, 194),
    "add_key": (248, 217),
}


def verdict(machine: str, call: int, *arguments: int, arch: int | None = None) -> int:
    """Return what the filter answers to a call."""
    return walked(machine, call, *arguments, arch=arch)[0]


def walked(machine: str, call: int, *arguments: int, arch: int | None = None) -> tuple[int, int]:
    """Return what the filter answers to a call, and in how many steps."""
    given = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=iIQ6Q", call, AUDIT_ARCH[machine] if arch is None else arch, 0, *given)
    steps = list(struct.iter_unpack("=HBBI", assemble(machine)))
    held, place = 0, 0
    for taken in itertools.count(1):
        code, then, otherwise, constant = steps[place]
        place += 1
        match code:
            case 0x20:
                (held,) = struct.unpack_from("=I", data, constant)
            case 0x15:
                place += then if held == constant else otherwise
            case 0x35:
                place += then if held >= constant else otherwise
            case 0x45:
                place += then if held & constant else otherwise
            case 0x06:
                return constant, taken
            case _:
                raise AssertionError(f"no such step: {code:#x}")
    raise AssertionError("never reached")


def numbered(pair: tuple[int | None, int | None], machine: str) -> int | None:
    return pair[MACHINES[::-1].index(machine)]


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_allowed_passes_whatever_its_arguments(machine: str) -> None:
    for name in ALLOWED:
        call = number(name, machine)
        assert call is None or verdict(machine, call, 2**64 - 1, 7) == ALLOW, name


@pytest.mark.parametrize("machine", MACHINES)
def test_what_reaches_beyond_the_process_is_refused(machine: str) -> None:
    for name, pair in FORBIDDEN.items():
        call = numbered(pair, machine)
        assert call is None or verdict(machine, call) == REFUSED, name


@pytest.mark.parametrize("machine", MACHINES)
def test_only_what_is_named_is_allowed(machine: str) -> None:
    named = {number(name, machine) for name in ALLOWED}
    checked = {
        number(name, machine) for name in ("openat", "mmap", "prlimit64", "sendto")
    }  # they allow a call of nothing but zeros
    passing = {call for call in range(1024) if verdict(machine, call) == ALLOW}
    assert passing <= named | checked | {number("fcntl", machine)}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_that_is_not_named_is_refused_whatever_its_arguments(machine: str) -> None:
    named = {number(name, machine) for name in (*ALLOWED, *CHECKED)}
    for call in (*range(1024), 2**30 - 1):
        assert call in named or verdict(machine, call, 15, 15, 15) == REFUSED, call


@pytest.mark.parametrize("machine", MACHINES)
def test_a_verdict_takes_few_steps_for_the_kernel_walks_them_all_for_every_child(machine: str) -> None:
    for call in range(512):
        assert walked(machine, call)[1] < 24, call


@pytest.mark.parametrize("machine", MACHINES)
def test_a_call_of_another_machine_or_table_is_the_end(machine: str) -> None:
    assert verdict(machine, 0, arch=0x40000003) == KILL
    if machine == "x86_64":
        assert verdict(machine, 0x40000000) == KILL


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "passes"),
    [
        ("openat", (0, 0, 0o2000000), True),
        ("openat", (0, 0, 0o1), False),
        ("openat", (0, 0, 0o2), False),
        ("openat", (0, 0, 0o100), False),
        ("openat", (0, 0, 0o1000), False),
        ("mmap", (0, 4096, 3, 0x22), True),
        ("mmap", (0, 512 << 10, 3, 0x20022), True),
        ("mmap", (0, 1 << 33, 3, 0x20022), True),
        ("mmap", (0, 32768, 3, 0x20022), False),
        ("clone", (0x3D0F00,), True),
        ("clone", (17,), False),
        ("clone", (0x3D0F00 | 0x10000000,), False),
        ("clone", (THREAD_FLAGS & ~0x10000,), False),
        ("ioctl", (0, 0x5421), True),
        ("ioctl", (0, 0x5412), False),
        ("fcntl", (0, 3), True),
        ("fcntl", (0, 8), False),
        ("prctl", (15,), True),
        ("prctl", (4,), False),
        ("prctl", (22,), False),
        ("socketpair", (1, 1), True),
        ("socketpair", (1, 1 | 0o2004000), True),
        ("socketpair", (1, 2), False),
        ("socketpair", (1, 5), False),
        ("sendto", (3, 7, 7, 0, 0, 0), True),
        ("sendto", (3, 7, 7, 0, 7, 110), False),
        ("sendto", (3, 7, 7, 0, 1 << 32, 110), False),
        ("socketpair", (2,), False),
        ("getsockopt", (3, 1, 3), True),
        ("getsockopt", (3, 1, 4), True),
        ("getsockopt", (3, 1, 77), False),
        ("getsockopt", (3, 1, 17), False),
        ("getsockopt", (3, 6, 3), False),
        ("getsockopt", (3, 1, 1 << 32 | 77), False),
        ("prlimit64", (0, 9, 0), True),
        ("prlimit64", (0, 9, 1 << 32), False),
        ("prlimit64", (0, 9, 1), False),
        ("prlimit64", (1, 9, 0), False),
    ],
)
def test_some_pass_with_some_arguments_only(machine: str, name: str, arguments: tuple[int, ...], passes: bool) -> None:
    call = number(name, machine)
    assert call is not None
    assert verdict(machine, call, *arguments) == (ALLOW if passes else REFUSED)


def test_clone3_is_not_there_so_that_clone_is_used() -> None:
    assert verdict("x86_64", 435) == ERRNO | errno.ENOSYS
