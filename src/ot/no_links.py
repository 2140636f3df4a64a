"""Reaches the files of a project from its directory, step by step, without following a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# A named pipe in a file's place would otherwise hold the opening for ever.
_ALWAYS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
READ = os.O_RDONLY | _ALWAYS
_DIRECTORY = READ | getattr(os, "O_DIRECTORY", 0)
_WRITES = os.O_WRONLY | os.O_RDWR
BY_DESCRIPTOR = os.open in os.supports_dir_fd and bool(NO_LINK)


def open_directory(path: Path, *, below: Path, make: bool = False) -> int:
    """Return a descriptor of the directory *path*; neither at *below* nor anywhere below it a link is followed.

    Raises:
        OSError: There is a link, or no directory, on the way; with *make*, missing directories are created.
    """
    fd = os.open(below, _DIRECTORY | NO_LINK)
    for name in _names(path, below):
        above = fd
        try:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=above)
            fd = os.open(name, _DIRECTORY | NO_LINK, dir_fd=above)
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
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
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
        fd = os.open(path if at is None else path.name, flags | NO_LINK | _ALWAYS, 0o600, dir_fd=at)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if flags & _WRITES and found.st_nlink > 1:
            raise OSError(errno.EMLINK, "it has another name (a hard link) and is not written", str(path))
    except OSError:
        os.close(fd)
        raise
    return fd


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
