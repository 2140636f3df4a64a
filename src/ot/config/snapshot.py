"""A project's .onetool directory, read once: what is hashed is what is used."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from ot.config.document import MAX_BYTES, too_large
from ot.files.private_file import read_regular
from ot.visible_text import printable

UNHASHED_FOLDERS = frozenset({"tmp", "logs", "stats", "sessions"})
"""Folders that the server writes; nothing in them is ever loaded, and they may hold no links."""

MAX_FILES = 5_000
MAX_FILE_BYTES = 16 << 20
MAX_TOTAL_BYTES = 64 << 20
MAX_UNHASHED = 1_000_000
MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a directory by their path in it; ``problems`` say why it cannot be trusted."""

    root: Path
    hashes: Mapping[str, str]
    contents: Mapping[str, bytes] = field(repr=False)
    problems: tuple[str, ...] = ()
    exposed: frozenset[str] = frozenset()
    """The files that other users may read."""

    def read(self, name: str) -> bytes | None:
        """Return the bytes that were hashed, or nothing where there is no such file.

        Raises:
            ConfigError: The file is there, but larger than what is kept.
        """
        if name in self.hashes and name not in self.contents:
            raise too_large(self.root / name)
        return self.contents.get(name)


def take_snapshot(root: Path, *, of_project: bool = False) -> Snapshot:
    """Return *root* as it is now; a link, a special file or one that others can write is a problem.

    *of_project* looks for links also in the folders that are not hashed: the server writes there.
    """
    return _Camera(root, of_project=of_project).snapshot()


class _Camera:
    def __init__(self, root: Path, *, of_project: bool) -> None:
        self._root = root
        self._of_project = of_project
        self._hashes: dict[str, str] = {}
        self._contents: dict[str, bytes] = {}
        self._problems: list[str] = []
        self._exposed: set[str] = set()
        self._bytes = 0

    def snapshot(self) -> Snapshot:
        for count, (name, entry) in enumerate(self._entries()):
            if why := self._take(name, entry):
                self._problems.append(f"{printable(name)} {why}")
            if count > MAX_FILES or self._bytes > MAX_TOTAL_BYTES:
                self._problems.append(f"it holds more than {MAX_FILES:,} files or {MAX_TOTAL_BYTES:,} bytes")
                break
            if len(self._problems) >= MAX_PROBLEMS:
                break
        if self._of_project:
            self._problems += islice(_links(self._root), MAX_PROBLEMS - len(self._problems))
        return Snapshot(self._root, self._hashes, self._contents, tuple(self._problems), frozenset(self._exposed))

    def _entries(self) -> Iterator[tuple[str, Path]]:
        yield ".", self._root
        for folder, folders, files in os.walk(self._root, onerror=self._unreadable):
            here = Path(folder)
            # Sorted, so that the same directory always reads the same.
            folders.sort()
            for name in sorted([*folders, *files]):
                yield (here / name).relative_to(self._root).as_posix(), here / name
            if here == self._root:
                folders[:] = [name for name in folders if name not in UNHASHED_FOLDERS]

    def _unreadable(self, error: OSError) -> None:
        self._problems.append(f"{printable(str(error.filename))} cannot be read: {error.strerror}")

    def _take(self, name: str, path: Path) -> str:
        """Keep one entry, or return why it spoils the whole directory."""
        try:
            name.encode()
            found = path.lstat()
            if why := _unfit(found):
                return why
            if stat.S_ISREG(found.st_mode):
                return self._keep(name, path)
        except UnicodeEncodeError:
            return "has a name that is not text"
        except OSError as error:
            return f"cannot be read: {error.strerror or error}"
        return ""

    def _keep(self, name: str, path: Path) -> str:
        read = read_regular(path, MAX_FILE_BYTES, follow=False, below=self._root)
        data = read.data
        if len(data) > MAX_FILE_BYTES:
            return f"is larger than {MAX_FILE_BYTES:,} bytes"
        self._bytes += len(data)
        self._hashes[name] = hashlib.sha256(data).hexdigest()
        if len(data) <= MAX_BYTES:
            self._contents[name] = data
        if read.readable_by_others:
            self._exposed.add(name)
        return ""


def _links(root: Path) -> Iterator[str]:
    """Yield what the folders that are not hashed hold beside files and directories."""
    # Not in the order of names: there may be very many files, and hardly ever a link.
    left, waiting = MAX_UNHASHED, [root / name for name in sorted(UNHASHED_FOLDERS)]
    while waiting:
        folder = waiting.pop()
        for entry in _entries_of(folder):
            left -= 1
            if left < 0:
                yield f"{', '.join(sorted(UNHASHED_FOLDERS))} hold more than {MAX_UNHASHED:,} files"
                return
            if entry.is_dir(follow_symlinks=False):
                waiting.append(folder / entry.name)
            elif not entry.is_file(follow_symlinks=False):
                name = printable((folder / entry.name).relative_to(root).as_posix())
                yield f"{name} is {'a symbolic link' if entry.is_symlink() else 'neither a file nor a directory'}"


def _entries_of(folder: Path) -> Iterator[os.DirEntry[str]]:
    # One that is a link, or cannot be read, is a problem that was found before.
    if not folder.is_symlink():
        with suppress(OSError), os.scandir(folder) as entries:
            yield from entries


def _unfit(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        # Also one that stays inside: it could lead into a folder that is not hashed.
        return "is a symbolic link"
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
        return "is neither a file nor a directory"
    return "can be written by every user" if os.name == "posix" and found.st_mode & 0o002 else ""
