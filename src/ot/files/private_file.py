"""Files that are read whole and once, written whole or not at all, and locked against other processes."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ot.files.no_links import CREATE, NO_LINK, READ, make_private, names_in, open_file, require_regular

if sys.platform != "win32":
    import fcntl

ATTEMPTS = 3
type Around = Callable[[BinaryIO], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class FileRead:
    """The bytes of a file, and who else may touch it."""

    data: bytes
    mode: int
    owner: int

    @property
    def readable_by_others(self) -> bool:
        """True when someone but the owner may read or write it."""
        return os.name == "posix" and bool(self.mode & 0o077)

    @property
    def writable_by_others(self) -> bool:
        """True when anyone may write it, or someone else owns it."""
        return os.name == "posix" and (bool(self.mode & 0o002) or self.owner not in (os.getuid(), 0))


def read_regular(path: Path, limit: int, *, follow: bool, below: Path | None = None) -> FileRead:
    """Return the file at *path*, at most *limit* + 1 bytes of it; with *below* no link on the way is followed.

    Raises:
        OSError: It cannot be read, is not a regular file, or was being written all the while.
    """
    for _ in range(ATTEMPTS):
        if found := _read_once(path, limit, READ if follow else READ | NO_LINK, below):
            return found
    raise OSError("the file was being written while it was read")


def _read_once(path: Path, limit: int, flags: int, below: Path | None) -> FileRead | None:
    with os.fdopen(open_file(path, flags, below=below), "rb") as file:
        before = os.fstat(file.fileno())
        require_regular(before, path)
        data = file.read(limit + 1)
        after = os.fstat(file.fileno())
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return FileRead(data, stat.S_IMODE(after.st_mode), after.st_uid) if same else None


def write_private(path: Path, text: str, mode: int = 0o600, *, below: Path | None = None) -> None:
    """Put *text* at *path*, readable by its owner alone unless *mode* says more; a reader sees the old or the new.

    With *below* no link on the way is followed, and one in the file's place is replaced.
    """
    data = text.encode()
    with (
        names_in(path.parent, below=below, make=True) as at,
        replacing(path if at is None else Path(path.name), dir_fd=at) as file,
    ):
        file.write(data)
        if sys.platform != "win32":
            os.fchmod(file.fileno(), mode)


@contextmanager
def replacing(
    path: Path, mode: int = 0o600, *, dir_fd: int | None = None, around: Around = lambda file: nullcontext()
) -> Generator[BinaryIO]:
    """Give a file that takes the place of *path* when the block ends, or vanishes when it fails.

    What *around* makes of the file, all of it written, is entered around the moment in which it takes that place.
    """
    fresh = path.with_name(f".tmp.{secrets.token_hex(8)}")
    fd = os.open(fresh, CREATE, mode, dir_fd=dir_fd)
    try:
        with os.fdopen(fd, "w+b") as file:
            yield file
            # Its content must be on disk before its name is.
            file.flush()
            os.fsync(fd)
            with around(file):
                os.replace(fresh, path, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh, dir_fd=dir_fd)
        raise


def write_new(path: Path, data: bytes) -> None:
    """Write *data*, readable by its owner alone, where nothing is yet.

    Raises:
        OSError: It cannot be written; FileExistsError when anything has this name already, a link included.
    """
    make_private(path.parent)
    with os.fdopen(os.open(path, CREATE, 0o600), "wb") as file:
        file.write(data)


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write *data* to an open file, however often the system takes only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def is_at(path: Path, fd: int) -> bool:
    """Return whether the open file *fd* is still what has the name *path*."""
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except OSError:
        return False


@contextmanager
def hold_lock(path: Path) -> Generator[None]:
    """Keep other processes of this user out of the same block for the same *path*."""
    make_private(path.parent)
    fd = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
    try:
        lock(fd)
        yield
    finally:
        os.close(fd)


def lock(fd: int, *, shared: bool = False) -> None:
    """Wait for the lock of an open file, and hold it until the file is closed, alone unless it is *shared*."""
    if sys.platform != "win32":
        fcntl.flock(fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_lock(fd: int) -> bool:
    """Lock an open file until it is closed; False when another process or thread has it.

    Raises:
        OSError: Its file system has no locks.
    """
    if sys.platform == "win32":
        return True  # there an open file cannot be removed, and renames keep what two do at once whole
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
