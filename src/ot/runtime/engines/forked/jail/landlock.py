"""Landlock: no files but those that are named, no TCP, no signals and abstract sockets to the outside."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct

from ot.runtime.engines.forked.jail.kernel import syscall

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every machine
ASK_VERSION = 1
PATH_BENEATH = 1

WRITE_FILE, READ_FILE, READ_DIR = 1 << 1, 1 << 2, 1 << 3
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""All rights on files that a version of Landlock knows; what is handled and not granted is refused."""
TCP_RIGHTS = 0x3
SCOPES = 0x3


def version() -> int:
    """Return the kernel's version of Landlock, 0 where there is none."""
    try:
        return syscall(CREATE_RULESET, 0, 0, ASK_VERSION)
    except OSError:
        return 0


class Rules:
    """The rules of one jail, gathered while the paths can still be opened."""

    def __init__(self) -> None:
        """Begin with rules that refuse everything.

        Raises:
            OSError: The kernel has no Landlock.
        """
        found = version()
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
