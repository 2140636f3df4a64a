"""The system calls that a jailed program may make, by machine."""

from __future__ import annotations

from collections.abc import Mapping

X86_64 = 0xC000003E
AARCH64 = 0xC00000B7
AUDIT_ARCH: Mapping[str, int] = {"x86_64": X86_64, "aarch64": AARCH64}

ALLOWED: Mapping[str, tuple[int | None, int | None]] = {
    # name: (x86_64, aarch64)
    "futex": (202, 98),
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "stat": (4, None),
    "lstat": (6, None),
    "statx": (332, 291),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "getdents64": (217, 61),
    "getcwd": (79, 17),
    "dup": (32, 23),
    "dup2": (33, None),
    "dup3": (292, 24),
    "pipe": (22, None),
    "pipe2": (293, 59),
    "eventfd2": (290, 19),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "poll": (7, None),
    "ppoll": (271, 73),
    "select": (23, None),
    "pselect6": (270, 72),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    "epoll_wait": (232, None),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "recvfrom": (45, 207),
    "shutdown": (48, 210),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "times": (100, 153),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "alarm": (37, None),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getppid": (110, 173),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "sysinfo": (99, 179),
    "uname": (63, 160),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "set_robust_list": (273, 99),
    "rseq": (334, 293),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
"""Allowed whatever their arguments: none of them reaches beyond the process and its open descriptors."""

CHECKED: Mapping[str, tuple[int, int]] = {
    "openat": (257, 56),
    "mmap": (9, 222),
    "clone": (56, 220),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "prctl": (157, 167),
    "socketpair": (53, 199),
    "sendto": (44, 206),
    "getsockopt": (55, 209),
    "prlimit64": (302, 261),
}
"""Allowed with some arguments only; ``kernel`` says with which."""


def number(name: str, machine: str) -> int | None:
    """Return the number of the call *name* on *machine*, or nothing where it does not exist."""
    pair = ALLOWED.get(name) or CHECKED[name]
    return pair[0] if machine == "x86_64" else pair[1]
