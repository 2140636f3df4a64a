"""PathGuard: the one rule for every path that a program chooses."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Self

from ot.files.guarded_directory import GuardedDirectory, Status
from ot.files.no_links import path_of_descriptor
from ot.files.protected_paths import FindLocked, LockedPath, ProtectedPaths, UnknownPlace, fold
from ot.files.run_writes import AsksFirst, current_writes

MAX_PATH_BYTES = 4095
MAX_NAME_BYTES = 255
MAX_LINKS = 40
MAX_DEPTH = 128
"""Directories below a root that a path may go through: a walk keeps them open, and open files are few."""

_KINDS = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, TimeoutError)


@dataclass(frozen=True, slots=True)
class FoundPath:
    """A file or directory that was opened: its real path, its device and number, and what below it is hidden."""

    path: str
    identity: tuple[int, int]
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(cls, fd: int) -> Self:
        """Return the path of the file that *fd* has open."""
        found = os.fstat(fd)
        return cls(path_of_descriptor(fd), (found.st_dev, found.st_ino))


@dataclass(frozen=True)
class PathGuard:
    """Opens paths inside the allowed roots, and nothing else.

    A path is walked name by name in open directories, and no step follows a link by itself, so that what was checked
    is what is opened. A link is read, and its target walked under the same rule. Relative paths start at the first
    root. What is ``hidden`` can be neither read nor written, and what is ``locked`` not written, whatever root it
    lies in; what is ``shown`` can be read, wherever it lies, and not written. Names that begin with a dot are written
    when they are ``harmless``, by the list or the user's own, or when the user agrees.

    Every method raises ValueError for text that cannot be a path, and PermissionError, FileNotFoundError,
    IsADirectoryError, NotADirectoryError or another OSError with the path as it was given and the reason; one that
    writes raises AsksFirst when the user has to agree, and has then written nothing.
    """

    roots: tuple[Path, ...]
    hidden: tuple[Path, ...] = ()
    locked: FindLocked = tuple
    shown: tuple[Path, ...] = ()
    harmless: tuple[str, ...] = ()
    _bounds: _Bounds = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Resolve the roots now: a link put in a root's place later is not followed."""
        if not self.roots:
            raise ValueError("a path guard needs at least one root")
        protected = ProtectedPaths(self.roots, self.hidden, self.shown, self._all_locked, self.harmless)
        object.__setattr__(self, "_bounds", _Bounds(_real(self.roots), _real(self.shown), protected))

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The guard as data, for another process, in which it only reads."""
        bounds = self._bounds

        def places(roots: tuple[_Root, ...]) -> list[list[str]]:
            return [[str(Path("/", *names)) for names in (root.given, root.real)] for root in roots]

        hidden = [os.path.realpath(path) for path in self.hidden]
        return {"roots": places(bounds.roots), "shown": places(bounds.shown), "hidden": hidden}

    @cached_property
    def plain_with_locks(self) -> dict[str, Any]:
        """The same, for what only finds out what to write: it knows what may not be written, and why."""
        return {**self.plain, "locked": [[str(place.path), place.why, place.below] for place in self.locked()]}

    @classmethod
    def for_reading(cls, plain: Mapping[str, Any]) -> Self:
        """Return the guard that ``plain`` describes; its roots are where they were then, whatever lies there now."""
        locks = [LockedPath(Path(path), why, below) for path, why, below in plain.get("locked", ())]
        roots, shown = (
            tuple(_Root(Path(given).parts[1:], Path(real).parts[1:]) for given, real in plain[kind])
            for kind in ("roots", "shown")
        )
        guard = cls(
            tuple(Path("/", *root.given) for root in roots),
            hidden=tuple(map(Path, plain["hidden"])),
            locked=(lambda: locks) if "locked" in plain else _lock_everything,
            shown=tuple(Path("/", *root.given) for root in shown),
        )
        object.__setattr__(guard, "_bounds", _Bounds(roots, shown, guard._bounds.protected))
        return guard

    def _all_locked(self) -> Iterable[LockedPath]:
        return (*self.locked(), *(LockedPath(path, "it belongs to a server") for path in self.shown))

    def find_file(self, path: str) -> FoundPath:
        """Return where the regular file at *path* is, so that another process can open exactly that one."""
        with self.open_for_reading(path) as file:
            return FoundPath.of(file.fileno())

    def find_directory(self, path: str) -> FoundPath:
        """Return where the directory at *path* is, and what below it may not be read."""
        with self.open_directory(path) as directory:
            found = FoundPath.of(directory.fileno())
        _, names = self._bounds.locate(Path(found.path).parts[1:])
        if ".onetool" in map(fold, names):
            # Another process looks by itself, and does not know which files there hold secrets.
            raise PermissionError(f"{_quote_path(path)}: only the pack file looks into directories named .onetool")
        below = (os.path.relpath(os.path.realpath(hidden), found.path) for hidden in self.hidden)
        return replace(found, hidden=tuple(sorted(name for name in below if name.split("/", 1)[0] != "..")))

    def open_for_reading(self, path: str | os.PathLike[str]) -> BinaryIO:
        """Return the regular file at *path*, open for reading bytes."""
        with self._place(path, file=True) as (directory, name):
            return directory.open_file(name)

    @contextmanager
    def open_for_writing(self, path: str | os.PathLike[str]) -> Generator[BinaryIO]:
        """Give a file that takes the place of *path* at the end of the block, whole or not at all.

        Missing directories are created. An existing file keeps its mode.
        """
        with self._place(path, file=True, write=True) as (directory, name), directory.replace_file(name) as file:
            yield file

    @contextmanager
    def open_for_appending(self, path: str | os.PathLike[str]) -> Generator[BinaryIO]:
        """Give a buffer for what is added to the file at *path*, created with its directories if need be."""
        with self._place(path, file=True, write=True) as (directory, name), directory.append_file(name) as buffer:
            yield buffer

    def open_directory(self, path: str | os.PathLike[str]) -> GuardedDirectory:
        """Return the directory at *path*, open; the caller closes it."""
        with self._place(path) as (directory, name):
            return directory.child(name)

    def status(self, path: str | os.PathLike[str]) -> Status:
        """Return the status of *path*; links are followed as far as they stay inside."""
        with self._place(path) as (directory, name):
            return directory.status(name)

    def absolute(self, path: str) -> Path:
        """Return the absolute form of a program's *path*, without following links or touching the disk.

        Raises:
            TypeError, ValueError: The system can have no such path.
        """
        return Path("/", *_absolute(_check_text(path), self._bounds.roots[0].given))

    def real(self, path: str) -> Path:
        """Return the same with all links followed; whether that place is allowed, opening it tells."""
        return Path(os.path.realpath(self.absolute(path)))

    def why_not(self, path: str, *, write: bool = False) -> str:
        """Return why nothing may be read, or written, at a real path, by its names alone; empty when it may.

        What lies there is not looked at, so that it also answers for what is not there any more.
        """
        names = _parts(path)
        try:
            self._bounds.locate(names)
        except PermissionError as error:
            return str(error)
        folded, protected = tuple(map(fold, names)), self._bounds.protected
        return protected.why_not_write(folded) if write else protected.why_not_read(folded)

    def require_agreed(self, paths: Iterable[str], below: Sequence[str] = ("",)) -> None:
        """Check that *paths*, or files *below* each, may be written: for calls that write several files.

        Raises:
            PermissionError: One of them may not be.
            AsksFirst: The user has not agreed to all unknown names on the way.
        """
        protected, places = self._bounds.protected, list[UnknownPlace]()
        for path in paths:
            start = self.real(path).parts[1:]
            for way in below:
                names = (*start, *_parts(way))
                if why := self.why_not("/".join(names), write=True):
                    raise _explain(PermissionError(why), f"{path}/{way}" if way else path, self.roots)
                places += protected.unknown_places(tuple(map(fold, names)))
        current_writes().require_agreed(places)

    @contextmanager
    def place_to_look(self, path: str, *, follow: bool = True) -> Generator[tuple[GuardedDirectory, str]]:
        """Give the open directory that holds *path*, and the last name in it; *follow* a last link, or stop at it."""
        with self._place(path, follow=follow) as place:
            yield place

    @contextmanager
    def place_to_change(
        self, path: str, *, file: bool = False, make: bool = False
    ) -> Generator[tuple[GuardedDirectory, str]]:
        """Give as above for what is changed there; with *make* missing directories are created on the way."""
        with self._place(path, file=file, write=True, make=make) as place:
            yield place

    @contextmanager
    def _place(
        self,
        path: str | os.PathLike[str],
        *,
        file: bool = False,
        write: bool = False,
        make: bool = True,
        follow: bool = True,
    ) -> Generator[tuple[GuardedDirectory, str]]:
        text = _check_text(path)
        try:
            if file and text.endswith(("/", "/.", "/..")):
                raise IsADirectoryError("a path that ends in '/' names a directory, not a file")
            with _Walk(self._bounds) as walk:
                yield walk.to(text, write=write, make=write and make, follow=follow and not write)
        except OSError as error:
            if isinstance(error, AsksFirst) or hasattr(error, "explained"):  # as another path's, inside this block
                raise
            explained = _explain(error, text, self.roots)
            setattr(explained, "explained", True)  # noqa: B010 - no exception declares it
            raise explained from None


def _lock_everything() -> tuple[LockedPath, ...]:
    return (LockedPath(Path("/"), "nothing is written here"),)


@dataclass(frozen=True)
class _Root:
    """An allowed directory: how the user wrote it, and where it really is."""

    given: tuple[str, ...]
    real: tuple[str, ...]


def _real(paths: tuple[Path, ...]) -> tuple[_Root, ...]:
    return tuple(_Root(path.absolute().parts[1:], Path(os.path.realpath(path)).parts[1:]) for path in paths)


@dataclass(frozen=True)
class _Bounds:
    """Knows which root an absolute path belongs to."""

    roots: tuple[_Root, ...]
    shown: tuple[_Root, ...]
    protected: ProtectedPaths

    @cached_property
    def _in_order(self) -> tuple[_Root, ...]:
        return (*self.shown, *sorted(self.roots, key=lambda root: len(root.real)))

    def locate(self, parts: tuple[str, ...]) -> tuple[_Root, tuple[str, ...]]:
        """Return the root that holds the path, and the path below it: what is shown goes first, then the outermost."""
        for root in self._in_order:
            for start in (root.given, root.real):
                if parts[: len(start)] == start:
                    return root, parts[len(start) :]
        raise PermissionError("it is outside the allowed directories")


class _Walk:
    """Goes from a root to a path, keeping open every directory on the way, so that ``..`` needs no lookup."""

    def __init__(self, bounds: _Bounds) -> None:
        self._bounds = bounds
        self._way: list[GuardedDirectory] = []
        self._links = 0

    def __enter__(self) -> Self:
        if os.open not in os.supports_dir_fd:
            raise PermissionError("files cannot be guarded on this system, so no program may reach them")
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def to(self, text: str, *, write: bool, make: bool, follow: bool) -> tuple[GuardedDirectory, str]:
        """Return the directory that holds the path, and the last name; a last link is followed if asked for."""
        parts = _absolute(text, self._bounds.roots[0].given)
        if not write and (place := self._place_at_once(parts, follow=follow)):
            return place
        todo = deque(self._start(parts))
        while todo:
            name = todo.popleft()
            last = not todo
            if name == "..":
                if len(self._way) == 1:
                    raise PermissionError("it is outside the allowed directories")
                self._way.pop().close()
            elif last and not follow:
                for depth, directory in enumerate(self._way if write else ()):
                    # A working directory that is itself an environment must stay usable.
                    directory.refuse_code(environments=depth > 0)
                return self._way[-1], name
            elif (target := self._way[-1].link_target(name)) is not None:
                todo.extendleft(reversed(self._follow(target)))
            elif last:
                return self._way[-1], name
            else:
                self._enter(name, todo, make=make)
        return self._way[-1], "."

    def _place_at_once(self, parts: tuple[str, ...], *, follow: bool) -> tuple[GuardedDirectory, str] | None:
        """Return the same where the way there has no link and nothing that needs a closer look, as nearly always."""
        root, below = self._bounds.locate(parts)
        if not below or ".." in below or len(below) > MAX_DEPTH or root in self._bounds.shown:
            return None
        way, name = (*root.real, *below[:-1]), below[-1]
        folded = tuple(map(fold, way))
        if not self._bounds.protected.is_open(folded):
            return None
        try:
            directory = GuardedDirectory.at(f"/{'/'.join(way)}", folded, self._bounds.protected)
        except OSError:
            return None  # the way step by step tells why
        self._way.append(directory)
        return None if follow and directory.link_target(name) is not None else (directory, name)

    def _start(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Stand in the root that holds the absolute path, and return the way below it."""
        root, below = self._bounds.locate(parts)
        self._leave()
        directory = GuardedDirectory.top(self._bounds.protected)
        for name in root.real:
            with directory:
                directory = directory.on_the_way(name) if root in self._bounds.shown else directory.child(name)
        self._way.append(directory)
        return below

    def _follow(self, target: str) -> tuple[str, ...]:
        self._links += 1
        if self._links > MAX_LINKS:
            raise PermissionError(f"too many symbolic links (more than {MAX_LINKS})")
        return self._start(_parts(target)) if target.startswith("/") else _parts(target)

    def _enter(self, name: str, below: Iterable[str], *, make: bool) -> None:
        if len(self._way) > MAX_DEPTH:
            raise PermissionError(f"it goes through more than {MAX_DEPTH} directories")
        try:
            self._way.append(self._way[-1].child(name))
        except FileNotFoundError:
            if not make or ".." in below:
                raise
            with suppress(FileExistsError):
                self._way[-1].make_child(name, tuple(below))
            self._way.append(self._way[-1].child(name))

    def _leave(self) -> None:
        while self._way:
            self._way.pop().close()


def _parts(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split("/") if name not in ("", "."))


def _absolute(text: str, start: tuple[str, ...]) -> tuple[str, ...]:
    if text == "~" or text.startswith("~/"):
        text = str(Path.home()) + text[1:]
    return _parts(text) if text.startswith("/") else (*start, *_parts(text))


def _check_text(path: str | os.PathLike[str]) -> str:
    """Return the path's text, if the system could have such a path at all."""
    text = os.fspath(path)
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - programs are not type-checked
        raise TypeError(f"a path must be text, not {type(text).__name__}")
    if not text or "\0" in text:
        raise ValueError(f"{_quote_path(text)} is not a path: it {'holds a NUL character' if text else 'is empty'}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{_quote_path(text)} is not a path: it holds an unpaired surrogate") from None
    if size > MAX_PATH_BYTES or any(len(name.encode()) > MAX_NAME_BYTES for name in text.split("/")):
        limits = f"{MAX_PATH_BYTES:,} bytes, {MAX_NAME_BYTES} between slashes"
        raise ValueError(f"{_quote_path(text)} is too long for a path (at most {limits})")
    return text


def _quote_path(text: str) -> str:
    return repr(text) if len(text) <= 200 else f"{text[:200]!r}... ({len(text):,} characters)"


def _explain(error: OSError, text: str, roots: tuple[Path, ...]) -> OSError:
    """Return the error in words for the program: its own path, the reason, what is allowed."""
    kind = next((kind for kind in _KINDS if isinstance(error, kind)), OSError)
    if kind is FileNotFoundError:
        return kind(f"{_quote_path(text)} does not exist (relative paths start at {roots[0]})")
    if kind is PermissionError:
        return kind(f"{_quote_path(text)}: {error.strerror or error} (allowed: below {_list_roots(roots)})")
    if error.errno == errno.ELOOP:
        return PermissionError(f"{_quote_path(text)}: a symbolic link took its place meanwhile")
    return kind(f"{_quote_path(text)}: {error.strerror or error}")


def _list_roots(roots: tuple[Path, ...]) -> str:
    return ", ".join(map(str, roots[:3])) + (f" and {len(roots) - 3} more" if len(roots) > 3 else "")
