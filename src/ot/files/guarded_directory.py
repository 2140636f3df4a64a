"""GuardedDirectory: an open directory inside an allowed root, and what may be done with the names in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Literal, Self

from ot.files.no_links import DIRECTORY, NO_LINK, NO_WAIT, READ, close_if_refused, open_real_directory
from ot.files.path_state import EMPTY, NOTHING, PathState, look_at, state_of_file
from ot.files.private_file import replacing
from ot.files.protected_paths import ENVIRONMENT, ProtectedPaths, fold
from ot.files.run_images import After
from ot.files.run_writes import current_writes

FileType = Literal["file", "directory", "link", "other"]

_TYPES: dict[int, FileType] = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}
_MODES = {kind: mode for mode, kind in _TYPES.items()} | {"other": stat.S_IFIFO}
_PASS_THROUGH = DIRECTORY | getattr(os, "O_PATH", 0)
_REPOSITORIES = ("HEAD", "objects", "refs"), ("HEAD", "commondir")
"""What makes git take a directory for a repository."""
BUFFER = 8192
MOST_FILLED = 1 << 24
"""How long a file may be made by zeros of which an undo still knows what it holds."""
_WHY_GIT = "with it git would take the directory for a repository, whose settings run commands"


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """A name in a directory and what it stands for; a link is not followed."""

    name: str
    type: FileType


@dataclass(frozen=True, slots=True)
class Status:
    """What is known of a path without opening it; ``modified`` counts seconds since 1970."""

    type: FileType
    size: int
    modified: float


class GuardedDirectory:
    """An open directory; whatever happens to its path meanwhile, names are looked up in this very directory.

    No method follows a link. Errors say only the reason: the caller knows which path was asked for.
    """

    def __init__(self, fd: int, folded: tuple[str, ...], protected: ProtectedPaths) -> None:
        """Own *fd*; *folded* is the directory's real path in the form that *protected* compares."""
        self._fd = fd
        self._folded = folded
        self._protected = protected

    @classmethod
    def at(cls, path: str, folded: tuple[str, ...], protected: ProtectedPaths) -> Self:
        """Return the directory *path*, opened in one step; *folded* are its names. Raises OSError where that fails."""
        return cls(open_real_directory(path), folded, protected)

    @classmethod
    def top(cls, protected: ProtectedPaths) -> Self:
        """Return the directory at which absolute paths start."""
        return cls(os.open("/", _PASS_THROUGH), (), protected)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Return its descriptor."""
        return self._fd

    def close(self) -> None:
        """Let go of the directory."""
        os.close(self._fd)

    def child(self, name: str) -> GuardedDirectory:
        """Return the directory *name*; ``.`` is this one once more.

        Raises:
            NotADirectoryError: It is something else, or a link.
            PermissionError: It may not be read.
        """
        _refuse(self._protected.why_not_read(self._path_of(name)))
        return self.on_the_way(name)

    def on_the_way(self, name: str) -> GuardedDirectory:
        """Return the directory *name*, on the way to a root: what may be read there is for the root to say."""
        return GuardedDirectory(os.open(name, _PASS_THROUGH, dir_fd=self._fd), self._path_of(name), self._protected)

    def make_child(self, name: str, below: Sequence[str] = ()) -> None:
        """Create the directory *name*, if what is to come *below* it may be written too.

        Raises:
            FileExistsError: Something has that name.
            AsksFirst: The user has not agreed to a name on the way.
        """
        self._require_writable((*self._path_of(name), *map(fold, below)))
        _refuse(self._makes_repository(name))
        with self._keep(name, lambda state, data: PathState("directory"), is_new=True):
            os.mkdir(name, dir_fd=self._fd)
        if why := self._makes_repository(name):
            # Another program made the rest meanwhile.
            os.rmdir(name, dir_fd=self._fd)
            raise PermissionError(why)

    def refuse_code(self, *, environments: bool) -> None:
        """See that this is neither a repository nor one of the virtual *environments*, whatever it is called."""
        if environments and any(map(self.has, ("pyvenv.cfg", "conda-meta"))):
            raise PermissionError(ENVIRONMENT)
        if any(all(map(self.has, names)) for names in _REPOSITORIES):
            raise PermissionError("nothing is written to a git repository: its hooks and settings run commands")

    def link_target(self, name: str) -> str | None:
        """Return the target of the link *name*, or nothing if it is not a link."""
        try:
            return os.readlink(name, dir_fd=self._fd)
        except OSError:
            return None  # also when it is missing or closed to us: opening it will say so

    def stat(self, name: str) -> os.stat_result:
        """Return all that the system tells of *name*."""
        _refuse(self._protected.why_not_read(self._path_of(name)))
        return self._stat(name)

    def status(self, name: str) -> Status:
        """Return the status of *name*."""
        found = self.stat(name)
        return Status(_TYPES.get(stat.S_IFMT(found.st_mode), "other"), found.st_size, found.st_mtime)

    def entries(self, read_name: Callable[[], None] | None = None, *, hidden: bool = False) -> list[DirectoryEntry]:
        """Return the directory's entries by name, without the *hidden*: those that none may read or could name.

        For each name *read_name* is called, which may raise.
        """
        shown = [_entry(item) for item in self._items(read_name) if hidden or self.may_show(item.name)]
        return sorted(shown, key=lambda entry: entry.name)

    def names(self, read_name: Callable[[], None]) -> list[tuple[str, int]]:
        """Return all names, in order, each with the part of its mode that is the type; also what may not be shown."""
        return sorted((item.name, _MODES[_entry(item).type]) for item in self._items(read_name))

    def _items(self, read_name: Callable[[], None] | None) -> Iterator[os.DirEntry[str]]:
        fd = os.open(".", DIRECTORY, dir_fd=self._fd)
        try:
            with os.scandir(fd) as found:
                for item in found:
                    if read_name:
                        read_name()
                    yield item
        finally:
            os.close(fd)

    def has(self, name: str) -> bool:
        """Return whether anything has that name."""
        try:
            self._stat(name)
        except OSError:
            return False
        return True

    def open_file(self, name: str) -> BinaryIO:
        """Return the regular file *name*, open for reading.

        Raises:
            IsADirectoryError: It is a directory.
            PermissionError: It may not be read, or is neither a file nor a directory.
        """
        _refuse(self._protected.why_not_read(self._path_of(name)))
        _check_regular(self._stat(name))
        fd = os.open(name, READ | NO_LINK, dir_fd=self._fd)
        try:
            if self._protected.is_hidden_file(_check_regular(os.fstat(fd))):
                raise PermissionError("it is private to the server")
        except BaseException:
            os.close(fd)
            raise
        return os.fdopen(fd, "rb", BUFFER)  # with a size, Python does not look for a terminal

    @contextmanager
    def replace_file(self, name: str, mode: int | None = None) -> Generator[BinaryIO]:
        """Give a file that takes the place of *name* when the block ends, or vanishes when it fails.

        Another name of an old file, a hard link, keeps the old content. *mode* is for an undo, which may give more
        permissions than the file has.
        """
        before = self._writable(name)
        fresh_mode = 0o666 if before is None and mode is None else 0o600

        def around(file: BinaryIO) -> AbstractContextManager[None]:
            return self._keep(name, lambda state, data: state_of_file(file))

        with replacing(Path(name), fresh_mode, dir_fd=self._fd, around=around) as file:
            yield file
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            elif before:
                _keep_owner_and_mode(file, before)
        if before is None and (why := self._makes_repository(name)):
            # Another program made the rest meanwhile.
            os.unlink(name, dir_fd=self._fd)
            raise PermissionError(why)

    @contextmanager
    def append_file(self, name: str) -> Generator[BinaryIO]:
        """Give a buffer whose bytes are added to the file *name*, created if need be, at the end of the block.

        Raises:
            PermissionError: It may not be written, or the file has other names, which may be protected.
        """
        fd = self.open_in_place(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(fd, "ab") as file, BytesIO() as buffer:
            yield buffer
            self.write_in_place(name, file, buffer.getvalue())

    def write_in_place(self, name: str, file: BinaryIO, data: bytes, at: int | None = None) -> int:
        """Write *data* into *file*, opened in place as *name*, at a place or at its end; return its size then."""
        images, fd = current_writes().images, file.fileno()
        end = os.fstat(fd).st_size
        if at is not None and at > end:
            self.resize(name, fd, at)
        start = end if at is None else at
        with images.write_in_place(self._fd, name, start, data) if images else nullcontext():
            if at is not None:
                file.seek(at)
            file.write(data)
            file.flush()
        return os.fstat(fd).st_size

    def resize(self, name: str, fd: int, size: int) -> None:
        """Cut the file that was opened in place as *name*, or make it longer."""

        def after(state: PathState, data: bytes | None) -> PathState:
            data = data if size else b""
            held = None if data is None or size > MOST_FILLED else data[:size].ljust(size, b"\0")
            return state._replace(size=size, content="").with_hash(held)

        with self._keep(name, after, reads=True):
            os.ftruncate(fd, size)

    def open_in_place(self, name: str, flags: int) -> int:
        """Return a descriptor of the file *name*, open for writing where it is, with these *flags* of ``os.open``.

        Raises:
            PermissionError: As for ``append_file``.
        """
        before = self._writable(name)
        if before and before.st_nlink > 1 and flags & os.O_TRUNC:
            with self.replace_file(name):  # its other names keep what it held
                pass
        made = nullcontext() if before else self._keep(name, lambda state, data: EMPTY, is_new=True)
        with made:
            fd = os.open(name, (flags & ~os.O_TRUNC) | NO_LINK | NO_WAIT, 0o666, dir_fd=self._fd)
        with close_if_refused(fd) as found:
            _refuse(self._makes_repository(name) if before is None else "")
            _check_regular(found)
            _refuse("it has other names (hard links); write it whole instead" if found.st_nlink > 1 else "")
            if flags & os.O_TRUNC and found.st_size:
                self.resize(name, fd, 0)
        return fd

    def require_changeable(self, name: str) -> os.stat_result:
        """Return the status of *name* if it may be moved or removed; a directory's content is not checked."""
        _refuse(self._protected.why_not_write(self._path_of(name)))
        _refuse("it is an allowed directory itself" if name == "." else "")
        return self._stat(name)

    def move_file(self, name: str, target: GuardedDirectory, new: str, *, overwrite: bool) -> None:
        """Give the file *name* the name *new* in *target*.

        Directories are never renamed: whoever has one open relies on where it lies.
        """
        found, there = _check_regular(self.require_changeable(name)), target._writable(new)
        if there and not overwrite:
            raise FileExistsError(f"{new!r} exists")
        if there and os.path.samestat(found, there):
            return  # of one file under two names the system renames nothing
        images = current_writes().images

        def after(state: PathState, data: bytes | None) -> PathState:
            # What could not be kept of the one is now in the other alone: no undo must take it for the run's own.
            is_lost = images is None or images.is_lost(self._fd, name)
            return PathState("file") if is_lost else look_at(self._fd, name)[0]

        with self._keep(name, lambda state, data: NOTHING), target._keep(new, after):
            os.rename(name, new, src_dir_fd=self._fd, dst_dir_fd=target._fd)
        if there is None and (why := target._makes_repository(new)):
            os.rename(new, name, src_dir_fd=target._fd, dst_dir_fd=self._fd)
            raise PermissionError(why)

    def change(self, name: str, mode: int | None, times: tuple[int, int] | None = None, *, widen: bool = False) -> None:
        """Take permissions from a file or directory that may be written, or change its times, in nanoseconds.

        Only an undo may *widen* what it has.

        Raises:
            PermissionError: It may not be written, it is something else, or *mode* would give more than it has.
        """
        self.require_changeable(name)
        fd = os.open(name, READ | NO_LINK, dir_fd=self._fd)
        with close_if_refused(fd) as found:
            if not stat.S_ISDIR(found.st_mode):
                _check_regular(found)
                _refuse("it has other names (hard links)" if found.st_nlink > 1 else "")
            more = mode is not None and not widen and mode & 0o7777 & ~found.st_mode
            _refuse(
                "a program cannot give a file more permissions than it has; shutil.copyfile copies without them"
                if more
                else ""
            )
            if mode is not None and mode & 0o7777 != stat.S_IMODE(found.st_mode):
                with self._keep(name, lambda state, data: state.with_hash(data)._replace(mode=mode & 0o7777)):
                    os.fchmod(fd, mode & 0o7777)
            if times is not None:
                os.utime(fd, ns=times)
        os.close(fd)

    def remove(self, name: str) -> None:
        """Remove the file, the link or the empty directory *name*."""
        is_directory = stat.S_ISDIR(self.require_changeable(name).st_mode)
        with self._keep(name, lambda state, data: NOTHING):
            if is_directory:
                os.rmdir(name, dir_fd=self._fd)
            else:
                os.unlink(name, dir_fd=self._fd)

    def make_link(self, name: str, target: str) -> None:
        """Make the symbolic link *name* once more, as an undo does; no program makes one."""
        self._require_writable(self._path_of(name))
        with self._keep(name, lambda state, data: PathState("link", content=target)):
            os.symlink(target, name, dir_fd=self._fd)

    def _keep(
        self, name: str, after: After, *, reads: bool = False, is_new: bool = False
    ) -> AbstractContextManager[None]:
        """Keep what *name* is, for an undo of the run; the block makes of it what comes *after*."""
        images = current_writes().images
        return images.change(self._fd, name, after, reads=reads, is_new=is_new) if images else nullcontext()

    def _path_of(self, name: str) -> tuple[str, ...]:
        return self._folded if name == "." else (*self._folded, fold(name))

    def _makes_repository(self, name: str) -> str:
        """Return why *name* may not be made here: it is the last that git wants to see."""
        new = fold(name)
        wanted = [names for names in _REPOSITORIES if new in map(fold, names)]
        made = any(all(fold(other) == new or self.has(other) for other in names) for names in wanted)
        return _WHY_GIT if made else ""

    def _stat(self, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=self._fd, follow_symlinks=False)

    def may_show(self, name: str) -> bool:
        """Return whether a listing may hold the name: one may read what has it, and a reply can carry it."""
        # No reply can carry the lone surrogates that a name holds which is not UTF-8.
        if not name.isascii() and any("\ud800" <= mark <= "\udfff" for mark in name):
            return False
        return not self._protected.why_not_read(self._path_of(name))

    def _require_writable(self, folded: tuple[str, ...]) -> None:
        _refuse(self._protected.why_not_write(folded))
        current_writes().require_agreed(self._protected.unknown_places(folded))

    def _writable(self, name: str) -> os.stat_result | None:
        """Return the status of the file that is to be written, nothing if it is new."""
        self._require_writable(self._path_of(name))
        try:
            found = self._stat(name)
        except FileNotFoundError:
            _refuse(self._makes_repository(name))
            return None
        _refuse("it is a symbolic link; write to the file that it points at" if stat.S_ISLNK(found.st_mode) else "")
        return _check_regular(found)


def _refuse(why: str) -> None:
    if why:
        raise PermissionError(why)


def _entry(item: os.DirEntry[str]) -> DirectoryEntry:
    if item.is_symlink():
        return DirectoryEntry(item.name, "link")
    if item.is_dir(follow_symlinks=False):
        return DirectoryEntry(item.name, "directory")
    return DirectoryEntry(item.name, "file" if item.is_file(follow_symlinks=False) else "other")


def _check_regular(found: os.stat_result) -> os.stat_result:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError("it is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise PermissionError("it is neither a file nor a directory but a device, pipe, socket or link")
    return found


def _keep_owner_and_mode(file: BinaryIO, before: os.stat_result) -> None:
    # Only root may give a file away; for others the owner is right already, or cannot be kept.
    with suppress(PermissionError):
        os.fchown(file.fileno(), before.st_uid, before.st_gid)
    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) & 0o777)
