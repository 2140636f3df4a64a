"""MemoryFiles: the temporary files of a program, in its own memory."""

from __future__ import annotations

import errno
import itertools
import os
import posixpath
import stat as modes
import time
from collections.abc import Sequence
from typing import Any

SECOND = 10**9


def oserror(number: int, shown: Any) -> OSError:
    """Return the error of that number, of the class that Python has for it."""
    return OSError(number, os.strerror(number), shown)


def status(numbers: Sequence[int]) -> os.stat_result:
    """Return a status of its seven first numbers, and three times in nanoseconds."""
    *first, read, written, changed = numbers
    more = {
        "st_atime": read / SECOND, "st_mtime": written / SECOND, "st_ctime": changed / SECOND,
        "st_atime_ns": read, "st_mtime_ns": written, "st_ctime_ns": changed,
        "st_blksize": 4096, "st_blocks": -(-first[6] // 512),
    }  # fmt: skip
    return os.stat_result((*first, read // SECOND, written // SECOND, changed // SECOND), more)


class MemoryNode:
    """A file or a directory; an open file keeps it when its name is gone."""

    numbers = itertools.count(1)

    def __init__(self, *, directory: bool) -> None:
        """Begin empty."""
        self.mode = modes.S_IFDIR | 0o700 if directory else modes.S_IFREG | 0o600
        self.data = bytearray()
        self.number = next(self.numbers)
        self.times = time.time_ns(), time.time_ns()

    @property
    def is_directory(self) -> bool:
        return modes.S_ISDIR(self.mode)

    def size(self) -> int:
        return len(self.data)

    def read(self, at: int, count: int) -> bytes:
        return bytes(self.data[at : at + count])

    def write(self, at: int | None, data: bytes) -> None:
        """Put *data* at a place, or at the end."""
        at = len(self.data) if at is None else at
        if at > len(self.data):
            self.data.extend(bytes(at - len(self.data)))
        self.data[at : at + len(data)] = data
        self.times = self.times[0], time.time_ns()

    def truncate(self, size: int) -> None:
        del self.data[size:]
        self.data.extend(bytes(size - len(self.data)))

    def sync(self) -> None:
        """Do nothing: it is where it is."""

    def stat(self) -> os.stat_result:
        read, written = self.times
        return status([self.mode, self.number, 0, 1, os.getuid(), os.getgid(), len(self.data), read, written, written])


class MemoryFiles:
    """A small tree of files, by path."""

    def __init__(self, tops: Sequence[str]) -> None:
        """Begin with the empty directories *tops*."""
        self._tops = tops
        self._nodes: dict[str, MemoryNode] = {}

    def _find(self, path: str, shown: Any) -> MemoryNode:
        if not self._nodes:
            self._nodes = {top: MemoryNode(directory=True) for top in self._tops}
        if node := self._nodes.get(path):
            return node
        parent = self._nodes.get(posixpath.dirname(path))
        raise oserror(errno.ENOTDIR if parent and not parent.is_directory else errno.ENOENT, shown)

    def _parent(self, path: str, shown: Any) -> None:
        if not self._find(posixpath.dirname(path), shown).is_directory:
            raise oserror(errno.ENOTDIR, shown)

    def files(self) -> list[str]:
        """Return the paths of all files."""
        return [path for path, node in self._nodes.items() if not node.is_directory]

    def stat(self, path: str, shown: Any, *, follow: bool = True) -> os.stat_result:
        """Return the status of *path*; there are no links to *follow*."""
        return self._find(path, shown).stat()

    def scan(self, path: str, shown: Any) -> list[tuple[str, os.stat_result, None]]:
        if not self._find(path, shown).is_directory:
            raise oserror(errno.ENOTDIR, shown)
        return [(name, self._nodes[f"{path}/{name}"].stat(), None) for name in self._names(path)]

    def names(self, path: str, shown: Any) -> list[str]:
        return [name for name, _, _ in self.scan(path, shown)]

    def _names(self, path: str) -> list[str]:
        return [posixpath.basename(one) for one in self._nodes if one != path and posixpath.dirname(one) == path]

    def link(self, path: str, shown: Any) -> str:
        """Fail: there are no links."""
        self._find(path, shown)
        raise oserror(errno.EINVAL, shown)

    def make(self, path: str, shown: Any) -> None:
        self._parent(path, shown)
        if path in self._nodes:
            raise oserror(errno.EEXIST, shown)
        self._nodes[path] = MemoryNode(directory=True)

    def remove(self, path: str, shown: Any, *, directory: bool) -> None:
        """Remove a file, or an empty directory."""
        if self._find(path, shown).is_directory != directory:
            raise oserror(errno.ENOTDIR if directory else errno.EISDIR, shown)
        if directory and self._names(path):
            raise oserror(errno.ENOTEMPTY, shown)
        del self._nodes[path]

    def rename(self, path: str, shown: Any, target: str) -> None:
        node = self._find(path, shown)
        self._parent(target, shown)
        if there := self._nodes.get(target):
            if there.is_directory != node.is_directory:
                raise oserror(errno.EISDIR if there.is_directory else errno.ENOTDIR, shown)
            if self._names(target):
                raise oserror(errno.ENOTEMPTY, shown)
        moved = [one for one in self._nodes if one == path or one.startswith(f"{path}/")]
        for one in moved:
            self._nodes[target + one[len(path) :]] = self._nodes.pop(one)

    def touch(self, path: str, shown: Any, times: tuple[int, int] | None = None, mode: int | None = None) -> None:
        node = self._find(path, shown)
        node.times = times or node.times
        if mode is not None:
            node.mode = modes.S_IFMT(node.mode) | mode & 0o7777

    def truncate(self, path: str, shown: Any, size: int) -> None:
        self._find(path, shown).truncate(size)

    def open(self, path: str, shown: Any, how: str) -> MemoryNode:
        """Return the content of a file, as ``ServerFiles.open``."""
        self._parent(path, shown)
        node = self._nodes.get(path)
        if node and (node.is_directory or how == "x"):
            raise oserror(errno.EEXIST if how == "x" else errno.EISDIR, shown)
        if node is None:
            if how in ("r", "+"):
                raise oserror(errno.ENOENT, shown)
            node = self._nodes[path] = MemoryNode(directory=False)
        if how == "w":
            node.truncate(0)
        return node
