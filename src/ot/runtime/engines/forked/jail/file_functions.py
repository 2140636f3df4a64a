"""What stands for ``open``, and for the functions of ``os`` that take paths and descriptors, when a program runs."""

from __future__ import annotations

import _io
import errno
import io
import itertools
import os
import posix
import stat as modes
import time
from collections.abc import Callable, Iterator
from typing import Any

from ot.runtime.engines.forked.jail.file_stubs import CHANGING, FIRST_DESCRIPTOR, LOOKING, OTHERS, PAIRS
from ot.runtime.engines.forked.jail.files import Handle, ProgramFiles, Row
from ot.runtime.engines.forked.jail.memory_files import oserror

NO_DESCRIPTOR = (
    "fileno: this file is reached through the server and has no descriptor; read it with .read(), and give libraries "
    "that want a file of the system io.BytesIO(open(path, 'rb').read())"
)
WRITES = os.O_WRONLY | os.O_RDWR
OF_FILES = {
    "read": "read", "write": "write", "lseek": "seek", "fstat": "stat", "ftruncate": "truncate", "fsync": "send",
    "fdatasync": "send",
}  # fmt: skip
"""Functions that take a descriptor, each with the method of its file."""
DIRECTORY_ARGUMENTS = ("dir_fd", "src_dir_fd", "dst_dir_fd")


class RawFile(io.RawIOBase):
    """A file that is open, as the buffers of ``io`` take it."""

    def __init__(self, handle: Handle, name: Any, flags: int) -> None:
        """Read from and write to *handle* as *flags* of ``os.open`` allow."""
        self.name = name
        self._handle = handle
        self._reads, self._writes = flags & WRITES != os.O_WRONLY, bool(flags & WRITES)
        self._appends = bool(flags & os.O_APPEND)
        self._at = 0
        self.mode = "rb+" if self._reads and self._writes else "rb" if self._reads else "wb"

    def readable(self) -> bool:
        return self._reads

    def writable(self) -> bool:
        return self._writes

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Fail, with what to do instead."""
        raise io.UnsupportedOperation(NO_DESCRIPTOR)

    def readinto(self, buffer: Any, /) -> int:
        self._require(self._reads, "not readable")
        data = self._handle.read(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        """Return all that is left."""
        self._require(self._reads, "not readable")
        parts: list[bytes] = []
        while data := self._handle.read(self._at, 1 << 30):
            self._at += len(data)
            parts.append(data)
        return b"".join(parts)

    def write(self, data: Any, /) -> int:
        self._require(self._writes, "not writable")
        taken = bytes(data)
        if taken:
            self._handle.write(None if self._appends else self._at, taken)
            self._at = self._handle.size() if self._appends else self._at + len(taken)
        return len(taken)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self._require(True, "")
        start = self._at if whence == 1 else self._handle.size() if whence == 2 else 0
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        self._require(True, "")
        return self._at

    def truncate(self, size: int | None = None, /) -> int:
        self._require(self._writes, "not writable")
        size = self._at if size is None else size
        self._handle.truncate(size)
        return size

    def stat(self) -> os.stat_result:
        return self._handle.stat()

    def send(self) -> None:
        """Send what was taken."""
        self._handle.sync()

    def close(self) -> None:
        """Send what was taken, and take no more."""
        if not self.closed:
            try:
                self._handle.sync()
            finally:
                super().close()

    def _require(self, can: bool, why: str) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")
        if not can:
            raise io.UnsupportedOperation(why)


class _Sends:
    """Sends what a buffer hands on when it is flushed."""

    raw: Any

    def flush(self) -> None:
        """Hand on what is held, and let it be sent."""
        super().flush()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue] - of the class beside it
        self.raw.send()


class Writer(_Sends, io.BufferedWriter):
    """A file that is written."""


class Updater(_Sends, io.BufferedRandom):
    """A file that is read and written."""


class Entry:
    """A name in a directory that was listed, with its status, or in a large one its type."""

    __slots__ = ("_found", "_target", "name", "path")

    def __init__(self, directory: Any, row: Row) -> None:
        name, self._found, self._target = row
        self.name: Any = os.fsencode(name) if isinstance(directory, bytes) else name
        self.path: Any = os.path.join(directory, self.name)  # noqa: PTH118 - what pathlib itself is made of

    def _mode(self, follow: bool) -> int:
        if self._target is not None and follow:
            return self._target
        return self._found if isinstance(self._found, int) else self._found.st_mode

    def _status(self) -> os.stat_result:
        if isinstance(self._found, int):
            self._found = os.lstat(self.path)
        return self._found

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return modes.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return modes.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        return self._target is not None

    def is_junction(self) -> bool:
        """Return False: only Windows has junctions."""
        return False

    def inode(self) -> int:
        """Return its number."""
        return self._status().st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path) if self.is_symlink() and follow_symlinks else self._status()  # noqa: PTH116 - as above

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"


class Scan:
    """What ``os.scandir`` returns."""

    def __init__(self, directory: Any, rows: list[Row]) -> None:
        self._entries: Iterator[Entry] = (Entry(directory, row) for row in rows)

    def __iter__(self) -> Scan:
        return self

    def __next__(self) -> Entry:
        return next(self._entries)

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._entries = iter(())


class Functions:
    """The functions by the names that they have in ``os``, and ``open``."""

    def __init__(self, files: ProgramFiles) -> None:
        """Mean the paths of *files*."""
        self._files = files
        self._numbers = itertools.count(FIRST_DESCRIPTOR)
        self._opened: dict[int, RawFile] = {}

    # ---------------------------------------------------------------- looking

    def stat(self, path: Any, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._do("stat", path, follow=follow_symlinks)

    def lstat(self, path: Any) -> os.stat_result:
        return self.stat(path, follow_symlinks=False)

    def access(self, path: Any, mode: int, **_: Any) -> bool:
        try:
            return mode << 6 & ~self.stat(path).st_mode == 0
        except OSError:
            return False

    def listdir(self, path: Any = ".") -> list[Any]:
        names = self._do("names", path)
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

    def scandir(self, path: Any = ".") -> Scan:
        return Scan(os.fspath(path), self._do("scan", path))

    def readlink(self, path: Any) -> Any:
        found = self._do("link", path)
        return os.fsencode(found) if isinstance(path, bytes) else found

    # ---------------------------------------------------------------- changing

    def mkdir(self, path: Any, mode: int = 0o777) -> None:
        self._do("make", path)

    def rmdir(self, path: Any) -> None:
        self._do("remove", path, directory=True)

    def remove(self, path: Any) -> None:
        self._do("remove", path, directory=False)

    unlink = remove

    def rename(self, src: Any, dst: Any) -> None:
        (here, source), (there, target) = self._place(src), self._place(dst)
        if here is not there:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), src, None, dst)
        here.rename(source, src, target)

    replace = rename

    def chmod(self, path: Any, mode: int, *, follow_symlinks: bool = True) -> None:
        self._do("touch", path, mode=mode)

    def utime(self, path: Any, times: Any = None, *, ns: Any = None, follow_symlinks: bool = True) -> None:
        if times is not None:
            ns = tuple(int(moment * 10**9) for moment in times)
        self._do("touch", path, times=ns or (time.time_ns(),) * 2)

    def truncate(self, path: Any, length: int) -> None:
        self._do("truncate", path, length)

    def symlink(self, src: Any, dst: Any, target_is_directory: bool = False) -> None:
        raise PermissionError(errno.EPERM, "programs cannot create links; copy the file", dst)

    def link(self, src: Any, dst: Any, **_: Any) -> None:
        self.symlink(src, dst)

    def listxattr(self, path: Any = None, **_: Any) -> list[str]:
        raise oserror(errno.ENOTSUP, path)

    def statvfs(self, path: Any) -> os.statvfs_result:
        raise oserror(errno.ENOTSUP, path)

    # ---------------------------------------------------------------- the working directory

    def getcwd(self) -> str:
        return self._files.directory()

    def getcwdb(self) -> bytes:
        return os.fsencode(self._files.directory())

    def chdir(self, path: Any) -> None:
        if not modes.S_ISDIR(os.stat(path).st_mode):  # noqa: PTH116 - as above
            raise oserror(errno.ENOTDIR, path)
        self._files.enter(os.fsdecode(path))

    # ---------------------------------------------------------------- descriptors

    def open(self, path: Any, flags: int, mode: int = 0o777) -> int:
        """Return one of these descriptors, whose file is closed with it."""
        if flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1):
            raise oserror(errno.EOPNOTSUPP, path)
        number = next(self._numbers)
        self._opened[number] = self.raw(path, flags)
        return number

    def of_file(self, method: str) -> Callable[..., Any]:
        """Return a function that does to a descriptor what *method* does to its file."""

        def function(fd: int, *args: Any) -> Any:
            return getattr(self.of_descriptor(fd), method)(*args)

        return function

    def close(self, fd: int) -> None:
        self.of_descriptor(fd).close()
        del self._opened[fd]

    def isatty(self, fd: int) -> bool:
        return False

    def raw(self, path: Any, flags: int) -> RawFile:
        """Return the file at *path*, open as *flags* say."""
        handle: Handle = self._do("open", path, how_to_open(flags))
        if flags & os.O_TRUNC and not flags & os.O_CREAT:
            handle.truncate(0)
        return RawFile(handle, path, flags)

    def of_descriptor(self, fd: int) -> RawFile:
        """Return the file of one of these descriptors."""
        if fd not in self._opened:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._opened[fd]

    def _do(self, step: str, path: Any, *args: Any, **kwargs: Any) -> Any:
        where, at = self._place(path)
        return getattr(where, step)(at, path, *args, **kwargs)

    def _place(self, path: Any) -> tuple[Any, str]:
        found = self._files.place(path, change=True)
        if found is None:  # /dev/null, or no path at all
            raise oserror(errno.EPERM if path else errno.ENOENT, path)
        return found


def how_to_open(flags: int) -> str:
    """Return the letter of ``ServerFiles.open`` for *flags* of ``os.open``."""
    if not flags & WRITES:
        return "r"
    if not flags & os.O_CREAT:
        return "+"
    if flags & os.O_EXCL:
        return "x"
    return "w" if flags & os.O_TRUNC else "a"


def functions_of(files: ProgramFiles) -> dict[str, Callable[..., Any]]:
    """Return the replacements for functions of ``os``, by name, and for ``open`` as ``builtins``."""
    ours = Functions(files)
    found = {name: _by_path(files, getattr(ours, name), getattr(posix, name), False) for name in LOOKING}
    found |= {name: _by_path(files, getattr(ours, name), getattr(posix, name), True) for name in CHANGING}
    found |= {name: _by_two_paths(getattr(ours, name)) for name in PAIRS}
    found |= {name: getattr(ours, name) for name in ("close", "isatty", *OTHERS)}
    found |= {name: ours.of_file(method) for name, method in OF_FILES.items()}
    opened = _open(files, ours)
    return found | {"builtins": opened, "sqlite3": _connect(files, opened)}


def _by_path(
    files: ProgramFiles, ours: Callable[..., Any], kernel: Callable[..., Any], change: bool
) -> Callable[..., Any]:
    def function(path: Any = ".", *args: Any, **kwargs: Any) -> Any:
        if isinstance(path, int):
            return kernel(path, *args, **kwargs)
        path = "." if path is None else path
        writes = change or (ours.__name__ == "open" and args and args[0] & WRITES)
        if files.place(path, change=bool(writes)) is None:
            return kernel(path, *args, **kwargs)
        return ours(path, *args, **_without_directories(kwargs))

    return function


def _by_two_paths(ours: Callable[..., Any]) -> Callable[..., Any]:
    def function(src: Any, dst: Any, *args: Any, **kwargs: Any) -> Any:
        return ours(src, dst, *args, **_without_directories(kwargs))

    return function


def _without_directories(kwargs: dict[str, Any]) -> dict[str, Any]:
    if any(kwargs.get(name) is not None for name in DIRECTORY_ARGUMENTS):
        raise NotImplementedError("dir_fd unavailable on this platform")
    return {name: value for name, value in kwargs.items() if name not in DIRECTORY_ARGUMENTS}


def _connect(files: ProgramFiles, open: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement for ``sqlite3.connect``: it reads a database of the workspace into memory for queries."""

    def connect(kernel: Callable[..., Any], database: Any = ":memory:", *args: Any, **kwargs: Any) -> Any:
        path = _database_path(database) if kwargs.get("uri") else database
        if not path or path == ":memory:" or files.place(path) is None:
            return kernel(database, *args, **kwargs)
        if (data := _content(open, path)) is None:
            return kernel(database, *args, **kwargs)
        if unsaved := next((end for end in ("-wal", "-journal") if _content(open, f"{os.fsdecode(path)}{end}", 1)), ""):
            raise OSError(
                errno.EBUSY, f"{path}{unsaved} holds changes that are not in the database yet; use data.query"
            )
        connection = kernel(":memory:", *args, **{name: value for name, value in kwargs.items() if name != "uri"})
        if data:
            # A database with a write-ahead log cannot be in memory; marked so, SQLite reads it without one.
            connection.deserialize(data[:18] + b"\x01\x01" + data[20:])
        connection.execute("PRAGMA query_only = ON")  # what is written to the copy would be lost
        return connection

    return connect


def _content(open: Callable[..., Any], path: Any, most: int = -1) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except FileNotFoundError:
        return None


def _database_path(address: Any) -> str:
    """Return the path in an address such as ``file:data/shop.db?mode=ro``; nothing for one in memory."""
    from urllib.parse import unquote  # noqa: PLC0415 - most programs open no database

    text = os.fsdecode(address)
    path, _, query = text.removeprefix("file:").partition("?")
    return "" if "mode=memory" in query else unquote(path.removeprefix("//"))


def _open(files: ProgramFiles, functions: Functions) -> Callable[..., Any]:
    """Return the replacement for ``open``."""

    def open(
        file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        flags = _flags(mode)
        if isinstance(file, int):
            mine = file >= FIRST_DESCRIPTOR
        else:
            mine = opener is not None or files.place(file, change=bool(flags & WRITES)) is not None
        if not mine:
            return _io.open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        _require_fit(mode, buffering, encoding, errors, newline)
        raw = _raw(functions, file, flags, opener)
        wrapped = _wrap(raw, mode, buffering, encoding, errors, newline)
        if flags & WRITES:
            files.writers.add(wrapped)
        return wrapped

    return open


def _raw(functions: Functions, file: Any, flags: int, opener: Any) -> Any:
    if opener is not None:
        found = opener(file, flags)
        if found < FIRST_DESCRIPTOR:
            return _io.FileIO(found, "rb" if not flags & WRITES else "wb")
        raw = functions.of_descriptor(found)
        raw.name = file
        return raw
    return functions.of_descriptor(file) if isinstance(file, int) else functions.raw(file, flags)


def _flags(mode: Any) -> int:
    """Return the flags of ``os.open`` for a mode of ``open``; raise ValueError if it is malformed."""
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    letters = set(mode)
    if letters - set("axrwb+t") or len(mode) > len(letters):
        raise ValueError(f"invalid mode: {mode!r}")
    if {"t", "b"} <= letters:
        raise ValueError("can't have text and binary mode at once")
    if len(letters & set("axrw")) != 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    new = {
        "r": 0,
        "w": os.O_CREAT | os.O_TRUNC,
        "x": os.O_CREAT | os.O_EXCL,
        "a": os.O_CREAT | os.O_APPEND,
    }[next(iter(letters & set("axrw")))]
    return new | (os.O_RDWR if "+" in letters else os.O_WRONLY if new else os.O_RDONLY)


def _require_fit(mode: str, buffering: int, encoding: Any, errors: Any, newline: Any) -> None:
    if "b" not in mode:
        if buffering == 0:
            raise ValueError("can't have unbuffered text I/O")
        return
    for name, value in (("encoding", encoding), ("errors", errors), ("newline", newline)):
        if value is not None:
            article = "a" if name == "newline" else "an"
            raise ValueError(f"binary mode doesn't take {article} {name} argument")


def _wrap(raw: Any, mode: str, buffering: int, encoding: Any, errors: Any, newline: Any) -> Any:
    if "a" in mode:
        raw.seek(0, 2)
    if buffering == 0:
        return raw
    size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    kind = Updater if "+" in mode else io.BufferedReader if "r" in mode else Writer
    buffer: Any = kind(raw, size)
    if "b" in mode:
        return buffer
    text = io.TextIOWrapper(buffer, io.text_encoding(encoding), errors, newline, line_buffering=buffering == 1)
    text.mode = mode  # pyright: ignore[reportAttributeAccessIssue] - as the real one does
    return text
