"""What a jailed program asks of Linux and must not get: data, a program that tries it, and the table for the page.

``PYTHONPATH=src python tests/runtime/engines/forked/linux_probes.py`` prints the table of docs/reference/jail.md.
"""

from __future__ import annotations

import sys

Numbers = tuple[int | None, int | None]

CALLS: dict[str, dict[str, Numbers]] = {
    # area: name: (x86_64, aarch64)
    "other processes": {
        "fork": (57, None),
        "vfork": (58, None),
        "execve": (59, 221),
        "execveat": (322, 281),
        "kill": (62, 129),
        "tkill": (200, 130),
        "tgkill": (234, 131),
        "rt_sigqueueinfo": (129, 138),
        "rt_tgsigqueueinfo": (297, 240),
        "pidfd_open": (434, 434),
        "pidfd_send_signal": (424, 424),
        "waitid": (247, 95),
        "wait4": (61, 260),
        "setpgid": (109, 154),
        "setsid": (112, 157),
        "setpriority": (141, 140),
        "sched_setscheduler": (144, 119),
        "sched_setaffinity": (203, 122),
        "ioprio_set": (251, 30),
    },
    "their memory": {
        "ptrace": (101, 117),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "process_madvise": (440, 440),
        "kcmp": (312, 272),
        "pidfd_getfd": (438, 438),
        "move_pages": (279, 239),
        "migrate_pages": (256, 238),
        "process_mrelease": (448, 448),
    },
    "sockets": {
        "socket": (41, 198),
        "connect": (42, 203),
        "bind": (49, 200),
        "listen": (50, 201),
        "accept": (43, 202),
        "accept4": (288, 242),
        "sendmsg": (46, 211),
        "recvmsg": (47, 212),
        "sendmmsg": (307, 269),
        "recvmmsg": (299, 243),
        "setsockopt": (54, 208),
        "getsockname": (51, 204),
        "getpeername": (52, 205),
    },
    "files": {
        "open": (2, None),
        "openat2": (437, 437),
        "creat": (85, None),
        "unlink": (87, None),
        "unlinkat": (263, 35),
        "rename": (82, None),
        "renameat2": (316, 276),
        "link": (86, None),
        "linkat": (265, 37),
        "symlink": (88, None),
        "symlinkat": (266, 36),
        "mkdirat": (258, 34),
        "mknodat": (259, 33),
        "chmod": (90, None),
        "fchmod": (91, 52),
        "fchmodat": (268, 53),
        "chown": (92, None),
        "fchown": (93, 55),
        "truncate": (76, 45),
        "ftruncate": (77, 46),
        "fallocate": (285, 47),
        "readlink": (89, None),
        "readlinkat": (267, 78),
        "chdir": (80, 49),
        "fchdir": (81, 50),
        "utimensat": (280, 88),
        "setxattr": (188, 5),
        "getxattr": (191, 8),
        "listxattr": (194, 11),
        "umask": (95, 166),
        "flock": (73, 32),
        "fsync": (74, 82),
        "sync": (162, 81),
        "syncfs": (306, 267),
        "statfs": (137, 43),
        "fstatfs": (138, 44),
        "name_to_handle_at": (303, None),
        "open_by_handle_at": (304, None),
    },
    "mounts and roots": {
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "chroot": (161, 51),
        "open_tree": (428, 428),
        "move_mount": (429, 429),
        "fsopen": (430, 430),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fspick": (433, 433),
        "mount_setattr": (442, 442),
        "quotactl": (179, 60),
        "swapon": (167, 224),
        "swapoff": (168, 225),
        "acct": (163, 89),
    },
    "namespaces": {
        "unshare": (272, 97),
        "setns": (308, 268),
        "sethostname": (170, 161),
        "setdomainname": (171, 162),
    },
    "new descriptors": {
        "memfd_create": (319, 279),
        "memfd_secret": (447, 447),
        "userfaultfd": (323, 282),
        "timerfd_create": (283, 85),
        "signalfd4": (289, 74),
        "inotify_init1": (294, 26),
        "fanotify_init": (300, 262),
        "io_uring_setup": (425, 425),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        "perf_event_open": (298, 241),
        "bpf": (321, 280),
        "landlock_create_ruleset": (444, 444),
        "splice": (275, 76),
        "tee": (276, 77),
        "vmsplice": (278, 75),
        "sendfile": (40, 71),
        "copy_file_range": (326, 285),
    },
    "shared memory and queues": {
        "shmget": (29, 194),
        "shmat": (30, 196),
        "shmctl": (31, 195),
        "semget": (64, 190),
        "semop": (65, 193),
        "msgget": (68, 186),
        "msgsnd": (69, 189),
        "mq_open": (240, 180),
    },
    "keys": {
        "add_key": (248, 217),
        "request_key": (249, 218),
        "keyctl": (250, 219),
    },
    "users and rights": {
        "setuid": (105, 146),
        "setgid": (106, 144),
        "setreuid": (113, 145),
        "setresuid": (117, 147),
        "setgroups": (116, 159),
        "capset": (126, 91),
        "capget": (125, 90),
        "seccomp": (317, 277),
        "landlock_restrict_self": (446, 446),
        "setrlimit": (160, 164),
        "personality": (135, 92),
        "arch_prctl": (158, None),
    },
    "the kernel and the machine": {
        "syslog": (103, 116),
        "init_module": (175, 105),
        "finit_module": (313, 273),
        "delete_module": (176, 106),
        "kexec_load": (246, 104),
        "kexec_file_load": (320, 294),
        "reboot": (169, 142),
        "iopl": (172, None),
        "ioperm": (173, None),
        "modify_ldt": (154, None),
        "settimeofday": (164, 170),
        "clock_settime": (227, 112),
        "clock_adjtime": (305, 266),
        "adjtimex": (159, 171),
        "vhangup": (153, 58),
        "lookup_dcookie": (212, 18),
        "nfsservctl": (180, 42),
        "uselib": (134, None),
        "ustat": (136, None),
        "sysfs": (139, None),
    },
    "memory of its own": {
        "mlock": (149, 228),
        "mlockall": (151, 230),
        "mbind": (237, 235),
        "set_mempolicy": (238, 237),
        "remap_file_pages": (216, 234),
        "pkey_alloc": (330, 289),
        "membarrier": (324, 283),
        "mincore": (27, 232),
        "msync": (26, 227),
    },
}
"""System calls that are refused whatever their arguments."""

UNIX, SIGCHLD = 1, 17
ARGUMENTS: dict[str, list[tuple[str, tuple[int, ...]]]] = {
    "openat": [
        ("create", (-100, 0, 0o101)),
        ("write", (-100, 0, 0o1)),
        ("read and write", (-100, 0, 0o2)),
        ("truncate", (-100, 0, 0o1000)),
        ("nameless file", (-100, 0, 0o20200002)),
    ],
    "clone": [
        ("process", (SIGCHLD,)),
        ("user namespace", (0x10000000 | SIGCHLD,)),
        ("sibling", (0x8000 | SIGCHLD,)),
        ("vfork", (0x4100 | SIGCHLD,)),
        ("traced thread", (0x2000 | 0x10F00,)),
        ("pidfd", (0x1000 | SIGCHLD,)),
    ],
    "clone3": [("anything", (0, 0))],
    "prctl": [
        ("dumpable", (4, 1)),
        ("seccomp", (22, 1)),
        ("ptracer", (0x59616D61, -1)),
        ("memory layout", (35, 1)),
        ("capabilities", (47, 2, 1)),
        ("subreaper", (36, 1)),
        ("death signal", (1, 0)),
        ("core scheduling", (62, 1)),
        ("time stamp counter", (26, 1)),
        ("endianness", (20, 1)),
    ],
    "ioctl": [
        ("type into a terminal", (0, 0x5412)),
        ("take a terminal", (0, 0x540E)),
        ("paste", (0, 0x541C)),
        ("list interfaces", (3, 0x8912)),
        ("file flags", (0, 0x40086602)),
        ("owner of a socket", (3, 0x8901)),
    ],
    "fcntl": [
        ("owner of signals", (3, 8, 1)),
        ("kind of signal", (3, 10, 9)),
        ("lease", (0, 1024, 0)),
        ("notify", (0, 1026, 1)),
        ("pipe size", (0, 1031, 1 << 20)),
        ("seals", (0, 1033, 1)),
        ("lock", (0, 6, 0)),
        ("open file lock", (0, 37, 0)),
    ],
    "socketpair": [
        ("IP", (2, 1, 0)),
        ("netlink", (16, 3, 0)),
        ("vsock", (40, 1, 0)),
        ("crypto", (38, 5, 0)),
        ("datagrams", (UNIX, 2, 0)),
        ("packets", (UNIX, 5, 0)),
    ],
    "sendto": [("an address", (3, 0, 0, 0, 4096, 110))],
    "getsockopt": [
        ("pidfd of the peer", (3, 1, 77, 4096, 4096)),
        ("credentials of the peer", (3, 1, 17, 4096, 4096)),
        ("groups of the peer", (3, 1, 59, 4096, 4096)),
        ("label of the peer", (3, 1, 31, 4096, 4096)),
        ("another protocol", (3, 6, 3, 4096, 4096)),
    ],
    "prlimit64": [("of another process", (1, 7, 0, 0)), ("raised", (0, 7, 4096, 0))],
}
"""System calls that are allowed, with arguments that are not."""

PATHS: dict[str, tuple[str, ...]] = {
    "/proc": (
        "/proc",
        "/proc/self/maps",
        "/proc/self/mem",
        "/proc/self/fd",
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/keys",
        "/proc/kallsyms",
        "/proc/kcore",
        "/proc/net/tcp",
        "/proc/sys/kernel/core_pattern",
        "/proc/sysrq-trigger",
        "/proc/mounts",
    ),
    "/sys": ("/sys", "/sys/kernel/debug", "/sys/kernel/security", "/sys/fs/cgroup", "/sys/class/net", "/sys/firmware"),
    "/dev": (
        "/dev",
        "/dev/mem",
        "/dev/kmsg",
        "/dev/kvm",
        "/dev/fuse",
        "/dev/shm",
        "/dev/tty",
        "/dev/ptmx",
        "/dev/urandom",
        "/dev/net/tun",
        "/dev/vda",
        "/dev/userfaultfd",
        "/dev/mqueue",
    ),
    "the host's files": (
        "/",
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hostname",
        "/root",
        "/home",
        "/tmp",
        "/var/tmp",
        "/run",
        "/boot",
        "/usr/bin",
        "/usr/local",
        "/var/run/docker.sock",
        "/var/log",
    ),
}

PROGRAM = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long

def refusal(number, arguments):
    ctypes.set_errno(0)
    given = [ctypes.c_long(value) for value in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *given) < 0 else 0

def opened(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        return error.errno
    return 0

{
    "calls": {name: refusal(number, arguments) for name, number, arguments in %(calls)r},
    "paths": {path: opened(path) for path in %(paths)r},
}
"""


def calls(machine: str) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Return the calls to try on *machine*, by what they are called in the report."""
    from ot.runtime.engines.forked.jail.syscalls import number

    place = 0 if machine == "x86_64" else 1
    pairs = [(name, pair[place]) for area in CALLS.values() for name, pair in area.items()]
    found: dict[str, tuple[int, tuple[int, ...]]] = {name: (found, ()) for name, found in pairs if found is not None}
    for name, tries in ARGUMENTS.items():
        known = number(name, machine)
        assert known is not None
        found |= {f"{name}: {what}": (known, arguments) for what, arguments in tries}
    return found


def program(machine: str) -> str:
    """Return the program that tries everything and tells the error of each, 0 for none."""
    tried = [(name, number, arguments) for name, (number, arguments) in calls(machine).items()]
    return PROGRAM % {"calls": tried, "paths": [path for area in PATHS.values() for path in area]}


def table() -> str:
    """Return the table of the page."""
    rows = [f"| {area} | {', '.join(f'`{name}`' for name in names)} |" for area, names in CALLS.items()]
    for name, tries in ARGUMENTS.items():
        rows.append(f"| arguments of `{name}` | {', '.join(what for what, _ in tries)} |")
    rows += [f"| {area} | {', '.join(f'`{path}`' for path in paths)} |" for area, paths in PATHS.items()]
    return "\n".join(["| area | tried and refused |", "|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
