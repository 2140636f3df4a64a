"""Calls to the kernel that Python's own library does not have."""

from __future__ import annotations

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
"""The C library; bound before any program could change what the name means."""


def prctl(option: int, *arguments: int) -> int:
    """Return what prctl() returns.

    Raises:
        OSError: It failed.
    """
    given = [ctypes.c_ulong(argument) for argument in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(LIBC.prctl(ctypes.c_int(option), *given))


def syscall(number: int, *arguments: int | None) -> int:
    """Return what the system call *number* returns; its arguments are numbers and addresses.

    Raises:
        OSError: It failed.
    """
    LIBC.syscall.restype = ctypes.c_long
    given = [ctypes.c_ulong(argument or 0) for argument in arguments]
    return _checked(LIBC.syscall(ctypes.c_long(number), *given))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
