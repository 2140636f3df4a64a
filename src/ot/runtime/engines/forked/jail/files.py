"""ProgramFiles: what the paths of a program in the jail mean.

What the jail lets the interpreter read comes from the kernel, what lies in /tmp is in this process's memory, and all
else is the workspace: each step there is asked of the server, which guards, counts and refuses it. This is a
convenience and no wall: whoever goes round it meets the jail.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat as modes
import sys
import time
from _weakrefset import WeakSet
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ot.runtime.engines.forked.jail.channel import Channel, loads
from ot.runtime.engines.forked.jail.memory_files import MemoryFiles, MemoryNode, oserror, status

FIRST_BYTES, MORE_BYTES = 1 << 20, 4 << 20
"""What the call that opens a file brings, and what each further one does."""
MOST_PENDING = 1 << 20
"""What is kept before it is sent, and what one message holds."""
FRESH_SECONDS = 1.0
"""Seconds for which the status of listed entries is cached; a change, or a call of a tool, ends that at once."""
MOST_SEEN = 50_000
TEMPORARY = ("/tmp", "/var/tmp", "/usr/tmp")
WORDS = {
    "FileNotFoundError": errno.ENOENT,
    "FileExistsError": errno.EEXIST,
    "IsADirectoryError": errno.EISDIR,
    "NotADirectoryError": errno.ENOTDIR,
}
NUMBERS = {os.strerror(number): number for number in errno.errorcode}
QUIET = ("stat", "scan")
"""Steps whose errors Python's own functions swallow: exists(), glob() and walk() say that there is nothing."""
BETWEEN = frozenset({"genericpath", "posixpath", "pathlib", "os", "glob", "shutil"})
MOST_NOTES = 4


Row = tuple[str, os.stat_result | int, int | None]
"""A name in a directory, its status, or in a large one its type, and of a link the mode of its target."""
Place = tuple[Any, str]
"""Where a path leads: the workspace or the memory, and the path as that one takes it."""


class ProgramFiles:
    """Tells where each path of a program leads, and keeps what its files still have to send."""

    def __init__(self, readable: Sequence[str]) -> None:
        """Leave the paths *readable*, and all below them, to the kernel."""
        self.cwd: str | None = None
        self.notes: list[str] = []
        self.memory = MemoryFiles(TEMPORARY[:2])
        self.writers: WeakSet[Any] = WeakSet()
        self._exact = frozenset(readable)
        self._below = tuple(f"{path}/" for path in readable)

    def begin(self, channel: Channel) -> None:
        """Ask through *channel* from now on."""
        self.workspace = ServerFiles(channel, self.note)
        channel.before_call = self.workspace.before_call

    def place(self, path: Any, *, change: bool = False) -> Place | None:
        """Return where *path* leads; None means the kernel, where nothing of the workspace can *change*."""
        text = os.fsdecode(path)
        if "\0" in text:
            raise ValueError("embedded null byte")
        if not text:
            return None
        if not text.startswith("/"):
            if self.cwd is None:
                return self.workspace, f"./{text}" if text.startswith("~") else text
            text = f"{self.cwd}/{text}"
        plain = posixpath.normpath(text)
        readable = plain in self._exact or plain.startswith(self._below)
        if plain == os.devnull or (readable and not change):
            return None
        if not readable and self._is_temporary(plain):
            return self.memory, plain
        return self.workspace, text

    def _is_temporary(self, plain: str) -> bool:
        if not any(plain == top or plain.startswith(f"{top}/") for top in TEMPORARY):
            return False
        return not any(plain == root or plain.startswith(f"{root}/") for root in self.workspace.roots())

    def directory(self) -> str:
        """Return the working directory."""
        return self.cwd or self.workspace.where()["cwd"]

    def enter(self, path: str) -> None:
        """Make *path* the working directory."""
        self.cwd = posixpath.normpath(posixpath.join(self.directory(), path))

    def flush(self) -> None:
        """Send all that the program's files still hold."""
        for file in [*self.writers]:
            if not file.closed:
                file.flush()
        self.workspace.sync()

    def end(self) -> list[str]:
        """Return the notes for the reply, and forget them."""
        if left := self.memory.files():
            shown = ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
            self.note(f"{shown}: what a program writes there is in its own memory, and nothing else can read it")
        notes, self.notes = self.notes, []
        return notes

    def note(self, text: str) -> None:
        """Keep *text* for the reply."""
        if f"note: {text}" not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(f"note: {text}")


class ServerFiles:
    """The server's files, step by step."""

    def __init__(self, channel: Channel, note: Callable[[str], None]) -> None:
        """Ask through *channel*; tell *note* what a program may not notice."""
        self._channel = channel
        self._note = note
        self._where: dict[str, Any] = {}
        self._dirty: dict[int, WorkspaceFile] = {}
        self._seen: dict[str, os.stat_result] = {}
        self._seen_at = 0.0
        self.changes = 0
        """How often something may have changed: what was read before is not believed any more."""

    # ---------------------------------------------------------------- asking

    def step(self, name: str, shown: Any, data: bytes = b"", **arguments: Any) -> tuple[Any, bytes]:
        """Return the value and the data of one step; an error names the path as the program has *shown* it."""
        if name != "write":
            self.sync()
        _require_text(arguments)
        answer = self._channel.ask_file({"t": "file", "f": name, "k": arguments}, b"\n" + data if data else b"")
        head, _, rest = answer.partition(b"\n")
        found = loads(head.decode())
        if "e" in found:
            raise self._failure(name, shown, *found["e"])
        return found["v"], rest

    def changing(self, name: str, shown: Any, data: bytes = b"", **arguments: Any) -> Any:
        """Return the value of a step that changes something."""
        try:
            return self.step(name, shown, data, **arguments)[0]
        finally:
            self.forget()

    def forget(self) -> None:
        """Believe nothing that was seen before."""
        self.changes += 1
        self._seen.clear()

    def before_call(self) -> None:
        """Let a tool see what was written, and believe nothing afterwards."""
        self.sync()
        self.forget()

    def sync(self) -> None:
        """Send what open files have taken and not sent yet."""
        while self._dirty:
            self._dirty.popitem()[1].sync()

    def dirty(self, file: WorkspaceFile) -> None:
        """Remember that *file* has something to send."""
        self._dirty[id(file)] = file

    def clean(self, file: WorkspaceFile) -> None:
        """Forget *file*, which has nothing to send any more."""
        self._dirty.pop(id(file), None)

    def note_loss(self, shown: Any, error: OSError) -> None:
        """Take note of what could not be written: the error may reach nobody."""
        self._note(f"{os.fsdecode(shown)}: not all of it was written: {error}")

    def where(self) -> dict[str, Any]:
        """Return where relative paths start, and the allowed directories."""
        if not self._where:
            self._where = self.step("where", None)[0]
        return self._where

    def roots(self) -> list[str]:
        """Return the allowed directories; none where a program may not even ask."""
        try:
            return self.where()["roots"]
        except PermissionError:
            return []

    def _failure(self, name: str, shown: Any, kind: str, message: str) -> Exception:
        """Return the error as Python's own functions would raise it, with the server's words where it refuses."""
        if kind in WORDS:
            return oserror(WORDS[kind], shown)
        message = message.removeprefix(f"{os.fsdecode(shown or '')!r}: ")
        if kind == "PermissionError":
            if name in QUIET and _asked_by_program():
                self._note(f"{os.fsdecode(shown or '')} was taken for missing: {message}")
            # With the number of a missing file Path.exists() says False, and does not fail.
            return PermissionError(errno.ENOENT if name == "stat" else errno.EACCES, message, shown)
        if kind == "OSError":
            return OSError(NUMBERS.get(message.rpartition(": ")[2], errno.EIO), message.rpartition(": ")[2], shown)
        kinds = {known.__name__: known for known in (OverflowError, TypeError, ValueError)}
        return kinds.get(kind, RuntimeError)(message)  # no OSError, which exists() would swallow

    # ---------------------------------------------------------------- steps

    def stat(self, path: str, shown: Any, *, follow: bool = True) -> os.stat_result:
        """Return the status of *path*."""
        if path.startswith("/") and self._is_above(posixpath.normpath(path)):
            return status([modes.S_IFDIR | 0o755, 1, 1, 2, 0, 0, 4096, 0, 0, 0])
        if time.monotonic() - self._seen_at < FRESH_SECONDS and (seen := self._seen.get(posixpath.normpath(path))):
            return seen
        return status(self.step("stat", shown, path=path, follow=follow)[0])

    def _is_above(self, path: str) -> bool:
        """Return whether an allowed directory lies below *path*: what leads there is no secret, and asked for often."""
        return any(root.startswith(path if path == "/" else f"{path}/") for root in self.roots())

    def scan(self, path: str, shown: Any) -> list[Row]:
        """Return the directory's entries, in as many pages as it takes."""
        pages = self._pages(path, shown)
        rows: list[Row] = [
            (name, status(numbers) if len(numbers) > 1 else numbers[0], target) for name, *numbers, target in pages
        ]
        self._see(posixpath.normpath(path), rows)
        return rows

    def names(self, path: str, shown: Any) -> list[str]:
        """Return the names in the directory."""
        return [*self._pages(path, shown, names=True)]

    def _pages(self, path: str, shown: Any, *, names: bool = False) -> Iterator[Any]:
        found: dict[str, Any] = {"more": True, "after": ""}
        while found["more"]:
            found, data = self.step("scan", shown, path=path, after=found["after"], names=names)
            yield from loads(data.decode())

    def _see(self, directory: str, rows: list[Row]) -> None:
        if time.monotonic() - self._seen_at >= FRESH_SECONDS or len(self._seen) > MOST_SEEN:
            self._seen.clear()
            self._seen_at = time.monotonic()
        start = "" if directory == "." else directory.rstrip("/") + "/"
        known = ((name, found) for name, found, target in rows if target is None and not isinstance(found, int))
        self._seen.update((start + name, found) for name, found in known)

    def link(self, path: str, shown: Any) -> str:
        """Return the target of a link."""
        return self.step("link", shown, path=path)[0]

    def make(self, path: str, shown: Any) -> None:
        """Make a directory."""
        self.changing("make", shown, path=path)

    def remove(self, path: str, shown: Any, *, directory: bool) -> None:
        """Remove a file or link, or an empty directory."""
        self.changing("remove", shown, path=path, directory=directory)

    def rename(self, path: str, shown: Any, target: str) -> None:
        """Give a file or directory another path."""
        self.changing("rename", shown, source=path, target=target)

    def touch(self, path: str, shown: Any, times: tuple[int, int] | None = None, mode: int | None = None) -> None:
        """Change times or mode."""
        given: dict[str, Any] = {"times": list(times)} if times else {"mode": mode}
        self.changing("touch", shown, path=path, **given)

    def truncate(self, path: str, shown: Any, size: int) -> None:
        """Cut a file, or make it longer."""
        self.changing("truncate", shown, path=path, size=size)

    def open(self, path: str, shown: Any, how: str) -> WorkspaceFile:
        """Return the content of a file: ``r`` for reading, ``w``, ``x`` and ``a`` as everywhere, ``+`` to change it."""
        if how != "r":
            return WorkspaceFile(self, path, shown, self.changing("begin", shown, path=path, mode=how))
        found, data = self.step("read", shown, path=path, size=FIRST_BYTES)
        return WorkspaceFile(self, path, shown, found["stat"], data)


class WorkspaceFile:
    """The content of one file of the server's that is open here."""

    def __init__(self, workspace: ServerFiles, path: str, shown: Any, numbers: list[int], data: bytes = b"") -> None:
        """Begin with its status, and the first of its *data*."""
        # Absolute from now on: the program may change its working directory.
        self._workspace, self._path, self._shown = workspace, path, shown
        self._status = status(numbers)
        self._size = self._status.st_size
        self._start, self._data = 0, data
        self._changes = workspace.changes
        self._pending: list[bytes] = []
        self._at: int | None = None
        self._end = 0
        self._waiting = 0

    def size(self) -> int:
        """Return its size in bytes, including those not sent yet."""
        self._refresh()
        return self._size

    def stat(self) -> os.stat_result:
        """Return its status now."""
        return self._workspace.stat(self._path, self._shown)

    def read(self, at: int, count: int) -> bytes:
        """Return *count* bytes from *at*, or fewer."""
        self.sync()
        self._refresh()
        if not self._start <= at < self._start + len(self._data):
            if at >= self._size:
                return b""
            self._fetch(at)
        return self._data[at - self._start : at - self._start + count]

    def _refresh(self) -> None:
        """Look again when something may have changed."""
        if self._changes != self._workspace.changes:
            self.sync()
            self._fetch(self._start)

    def _fetch(self, at: int) -> None:
        most = MORE_BYTES if at else FIRST_BYTES
        found, self._data = self._workspace.step("read", self._shown, path=self._path, offset=at, size=most)
        self._start, self._size, self._changes = at, found["stat"][6], self._workspace.changes

    def write(self, at: int | None, data: bytes) -> None:
        """Take *data* for the place *at*, or for the end."""
        if self._pending and (at is None) == (self._at is None) and at in (None, self._end):
            self._pending.append(data)
        else:
            self.sync()
            self._pending, self._at = [data], at
        self._waiting += len(data)
        self._end = (self._size if at is None else at) + len(data)
        self._size = max(self._size, self._end)
        self._workspace.dirty(self)
        if self._waiting >= MOST_PENDING:
            self.sync()

    def truncate(self, size: int) -> None:
        self.sync()
        self._workspace.truncate(self._path, self._shown, size)
        self._size = size

    def sync(self) -> None:
        """Send what was taken."""
        data, self._pending, self._waiting = b"".join(self._pending), [], 0
        self._workspace.clean(self)
        if not data:
            return
        try:
            for start in range(0, len(data), MOST_PENDING):
                at = {} if self._at is None else {"at": self._at + start}
                part = data[start : start + MOST_PENDING]
                self._size = self._workspace.changing("write", self._shown, part, path=self._path, **at)
        except OSError as error:
            self._workspace.note_loss(self._shown, error)
            raise
        self._data, self._changes = b"", self._workspace.changes


Handle = WorkspaceFile | MemoryNode
"""The content of one file that is open."""


def _require_text(arguments: dict[str, Any]) -> None:
    """Refuse a path that no message can hold: half of a character would become another path."""
    for value in arguments.values():
        if isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"{value!r} is not a path: it holds an unpaired surrogate") from None


def _asked_by_program() -> bool:
    """Return whether the program itself looks there, and no library on its own account."""
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - there is no other way to see who asks
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name not in BETWEEN and not name.startswith("ot.runtime."):
            return name == "__main__"
        frame = frame.f_back
    return False
