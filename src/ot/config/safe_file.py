"""Files that are read whole and once, and written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from ot.no_links import NO_LINK, READ, names_in, open_file

if sys.platform != "win32":
    import fcntl

ATTEMPTS = 3


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
        OSError: It cannot be read, is no regular file, or was being written all the while.
    """
    for _ in range(ATTEMPTS):
        if found := _read_once(path, limit, READ if follow else READ | NO_LINK, below):
            return found
    raise OSError("the file was being written while it was read")


def _read_once(path: Path, limit: int, flags: int, below: Path | None) -> FileRead | None:
    descriptor = open_file(path, flags, below=below)
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise OSError("it is not a regular file")
        data = file.read(limit + 1)
        after = os.fstat(descriptor)
    same = (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    return FileRead(data, stat.S_IMODE(after.st_mode), after.st_uid) if same else None


def write_private(path: Path, text: str, mode: int = 0o600, *, below: Path | None = None) -> None:
    """Put *text* at *path*, readable by its owner alone unless *mode* says more; a reader sees the old or the new.

    With *below* no link on the way is followed, and one in the file's place is replaced.
    """
    with names_in(path.parent, below=below, make=True) as at:
        old = path if at is None else Path(path.name)
        fresh = old.with_name(f".{path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=at)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(descriptor)
                _set_mode(file.fileno(), fresh, mode)
            os.replace(fresh, old, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=at)
            raise


def _set_mode(descriptor: int, path: Path, mode: int) -> None:
    if sys.platform == "win32":
        path.chmod(mode)
    else:
        os.fchmod(descriptor, mode)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Keep other processes of this user out of the same block for the same *path*."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | NO_LINK, 0o600)
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
