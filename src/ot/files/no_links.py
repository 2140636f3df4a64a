"""Opens files and directories without following links; a project's, step by step from its directory."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

# Looked up with a default: not every system has them.
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# Without O_NONBLOCK, opening a named pipe that was put in a file's place would hang for ever.
NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
READ = os.O_RDONLY | NO_WAIT
CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_LINK | NO_WAIT
DIRECTORY = READ | getattr(os, "O_DIRECTORY", 0) | NO_LINK
_WRITES = os.O_WRONLY | os.O_RDWR
BY_DESCRIPTOR = os.open in os.supports_dir_fd and bool(NO_LINK)


def make_private(path: Path) -> None:
    """Make the directory *path*, and those above it that are missing, for their owner alone.

    Raises:
        OSError: It cannot be made, or is something else.
    """
    # Path.mkdir(parents=True) would leave the modes of those above to the umask.
    if not path.is_dir():
        make_private(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def path_of_descriptor(fd: int) -> str:
    """Return the path, free of links, that what *fd* has open has at this moment."""
    if sys.platform == "darwin":
        import fcntl  # noqa: PLC0415 - Windows has none

        return fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0").decode()
    return str(Path(f"/proc/self/fd/{fd}").readlink())


@cache
def _openat2() -> tuple[Any, Any, int, bytes]:
    """Return a caller of Linux's openat2, and its arguments for passing through directories without following links."""
    import ctypes  # noqa: PLC0415 - only who reaches files needs it
    import struct  # noqa: PLC0415

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    flags, no_links, number = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, 0x04, 437
    how = struct.pack("=QQQ", flags, 0, no_links)
    return call, ctypes.get_errno, number, how


def open_real_directory(path: str) -> int:
    """Return a descriptor that passes through the directory *path*, an absolute one with no link in it, in one step.

    Raises:
        OSError: There is a link, or no directory, on the way, or this system cannot tell in one step.
    """
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    call, get_errno, number, how = _openat2()
    fd: int = call(number, -1, os.fsencode(path), how, len(how))
    if fd < 0:
        raise OSError(get_errno(), os.strerror(get_errno()), path)
    return fd


def open_directory(path: Path, *, below: Path, make: bool = False) -> int:
    """Return a descriptor of the directory *path*; neither at *below* nor anywhere below it a link is followed.

    Raises:
        OSError: There is a link, or no directory, on the way; with *make*, missing directories are created.
    """
    fd = os.open(below, DIRECTORY)
    for name in _names(path, below):
        above = fd
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=above)
            fd = os.open(name, DIRECTORY, dir_fd=above)
        finally:
            os.close(above)
    return fd


@contextmanager
def names_in(path: Path, *, below: Path | None, make: bool = False) -> Generator[int | None]:
    """Give what ``dir_fd`` takes for names in the directory *path*; nothing where the whole path is to be used.

    Without *below* the links on the way are the user's own choice.
    """
    if below is None or not BY_DESCRIPTOR:
        if below is not None:
            _refuse_links(path, below)
        if make:
            make_private(path)
        yield None
        return
    fd = open_directory(path, below=below, make=make)
    try:
        yield fd
    finally:
        os.close(fd)


def open_file(path: Path, flags: int, *, below: Path | None = None, make: bool = False) -> int:
    """Return a descriptor of the file *path*, made private if it is new.

    With *below* it must be a regular file, reached without a link; one that is written must have no second name.

    Raises:
        OSError: It cannot be opened, or is no such file.
    """
    with names_in(path.parent, below=below, make=make) as at:
        if below is None:
            return os.open(path, flags, 0o600)
        fd = os.open(path if at is None else path.name, flags | NO_LINK | NO_WAIT, 0o600, dir_fd=at)
    with close_if_refused(fd) as found:
        require_regular(found, path)
        if flags & _WRITES and found.st_nlink > 1:
            raise OSError(errno.EMLINK, "it has another name (a hard link) and is not written", str(path))
    return fd


@contextmanager
def close_if_refused(fd: int) -> Generator[os.stat_result]:
    """Give what has been opened as *fd*, and close it if the block raises."""
    try:
        yield os.fstat(fd)
    except BaseException:
        os.close(fd)
        raise


def require_regular(found: os.stat_result, path: Path | str) -> None:
    """Check that *found*, which was opened at *path*, is a regular file; raise OSError when it is anything else."""
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def _names(path: Path, below: Path) -> tuple[str, ...]:
    names = path.relative_to(below).parts
    if ".." in names:
        raise OSError(errno.EINVAL, "a path with '..' is not followed", str(path))
    return names


def _refuse_links(path: Path, below: Path) -> None:
    """Look at each step by its path, where a system cannot open a name in an open directory."""
    for count in range(len(names := _names(path, below)) + 1):
        step = below.joinpath(*names[:count])
        if step.is_symlink() or step.is_junction():
            raise OSError(errno.ELOOP, "it is a link", str(step))
