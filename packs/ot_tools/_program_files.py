"""The small steps on one path that a program's use of Python's file functions becomes, under the same guard.

Each is called as the tool of the pack ``file`` that does the same, so that one policy speaks of both.
"""

from __future__ import annotations

import errno
import json
import os
import stat as modes
import time
from bisect import bisect_right
from contextlib import suppress
from itertools import count
from operator import itemgetter
from typing import Any

from ot.execution.tool_context import current_tool_context
from ot.files.guarded_directory import GuardedDirectory
from ot.files.path_guard import PathGuard
from ot.files.run_writes import current_writes
from ot_tools._tree_changes import move_tree
from ot_tools._tree_walk import WalkDeadline

__ot_heavy__ = ["scan"]

PAGE, MOST_STATUS = 10_000, 2_500
MAX_NAMES = 1_000_000
NAME_COST, ROW_COST = 5, 15
"""What it costs to read a name of a directory, and to tell its status."""
UNSETTLED_NS = 50_000_000
"""A directory that has just changed may change again and have the same times."""
MOVE_SECONDS = 10.0
MAX_TIME = 1 << 63
OPENED = {
    "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL,
    "a": os.O_WRONLY | os.O_CREAT,
    "+": os.O_WRONLY,
}


def where() -> dict[str, Any]:
    """Return where relative paths start, and the allowed directories."""
    context = current_tool_context()
    roots = [str(root.absolute()) for root in context.guard.roots]
    return {"cwd": roots[0], "roots": [*dict.fromkeys([*roots, *map(os.path.realpath, roots)])]}


def stat(*, path: str, follow: bool = True) -> list[int]:
    """Return the system's status of a path."""
    with _guard().place_to_look(path, follow=follow) as (directory, name):
        return _numbers(directory.stat(name))


def link(*, path: str) -> str:
    """Return the target of a symbolic link."""
    with _guard().place_to_look(path, follow=False) as (directory, name):
        directory.stat(name)
        target = directory.link_target(name)
    if target is None:
        raise OSError(os.strerror(errno.EINVAL))
    return target


def scan(*, path: str, after: str = "", names: bool = False) -> dict[str, Any]:
    """Return a page of what a directory holds, each with its status, and of a link with the mode of its target.

    With *names* it returns names alone, and of a large directory the types instead of the whole status.
    """
    guard = _guard()
    with guard.open_directory(path) as directory:
        found = _names(directory, path)
        start = bisect_right(found, after, key=itemgetter(0))
        more = start + PAGE < len(found)
        shown = [entry for entry in found[start : start + PAGE] if directory.may_show(entry[0])]
        if names:
            page: list[Any] = [name for name, _ in shown]
        elif len(found) > MOST_STATUS:
            page = [[name, mode, _target(guard, path, name, mode)] for name, mode in shown]
        else:
            page = [row for name, _ in shown if (row := _row(guard, directory, path, name))]
    data = json.dumps(page, separators=(",", ":")).encode()
    return {"more": more, "after": found[start + PAGE - 1][0] if more else "", "data": data}


def read(*, path: str, offset: int = 0, size: int = 1 << 20) -> dict[str, Any]:
    """Return the status of a file, and some of its bytes."""
    with _guard().open_for_reading(path) as stream:
        found = os.fstat(stream.fileno())
        stream.seek(offset)
        return {"stat": _numbers(found), "data": stream.read(size)}


def begin(*, path: str, mode: str) -> list[int]:
    """Open a file for writing as ``open`` does in this mode, close it again and return its status."""
    with _guard().place_to_change(path, file=True) as (directory, name):
        if not directory.has(name):
            current_writes().spend(0)
        fd = directory.open_in_place(name, OPENED[mode])
        try:
            return _numbers(os.fstat(fd))
        finally:
            os.close(fd)


def write(*, path: str, data: bytes, at: int | None = None) -> int:
    """Write bytes into a file that exists, at a place or at its end; return its size."""
    with _guard().place_to_change(path, file=True) as (directory, name):
        fd = directory.open_in_place(name, os.O_WRONLY | (os.O_APPEND if at is None else 0))
        with os.fdopen(fd, "wb") as stream:
            end = os.fstat(fd).st_size
            # What lies between its end and the place becomes part of it, too.
            current_writes().spend(len(data) + max((end if at is None else at) - end, 0))
            return directory.write_in_place(name, stream, data, at)


def truncate(*, path: str, size: int) -> int:
    """Cut a file, or make it longer."""
    with _guard().place_to_change(path, file=True) as (directory, name):
        fd = directory.open_in_place(name, os.O_WRONLY)
        try:
            current_writes().spend(max(size - os.fstat(fd).st_size, 0))
            directory.resize(name, fd, size)
        finally:
            os.close(fd)
    return size


def touch(*, path: str, times: list[int] | None = None, mode: int | None = None) -> None:
    """Change the times of a file, in nanoseconds, or take permissions from it; none are ever given."""
    # A larger number reaches this process as a float.
    if times and not all(-MAX_TIME <= moment < MAX_TIME for moment in times):
        raise OverflowError("timestamp out of range: times have at most 64 bits, in nanoseconds")
    with _guard().place_to_change(path) as (directory, name):
        directory.change(name, mode, (times[0], times[1]) if times else None)


def make(*, path: str) -> None:
    """Make one directory."""
    with _guard().place_to_change(path) as (directory, name):
        if name == ".":
            raise FileExistsError("it exists")
        current_writes().spend(0)
        directory.make_child(name)


def remove(*, path: str, directory: bool = False) -> None:
    """Remove a file or link, or an empty directory."""
    with _guard().place_to_change(path) as (parent, name):
        is_directory = modes.S_ISDIR(parent.require_changeable(name).st_mode)
        if is_directory and not directory:
            raise IsADirectoryError("it is a directory")
        if directory and not is_directory:
            raise NotADirectoryError("it is not a directory")
        parent.remove(name)


def rename(*, source: str, target: str) -> None:
    """Give a file or directory another path; a file that has it already is replaced, as is an empty directory."""
    guard = _guard()
    with guard.place_to_change(target) as (there, new):
        # Its parent must be there: what follows would make it.
        taken = there.require_changeable(new).st_mode if there.has(new) else 0
        with guard.place_to_change(source) as (here, name):
            moved = here.require_changeable(name).st_mode
        if taken and modes.S_ISDIR(taken) != modes.S_ISDIR(moved):
            raise (
                IsADirectoryError("it is a directory")
                if modes.S_ISDIR(taken)
                else NotADirectoryError("it is not a directory")
            )
        if taken and modes.S_ISDIR(taken):
            _require_empty(there, new)
    move_tree(guard, source, target, WalkDeadline.after(MOVE_SECONDS), overwrite=True)


def _guard() -> PathGuard:
    return current_tool_context().guard


def _numbers(found: os.stat_result) -> list[int]:
    return [*found[:7], found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns]


_last: tuple[tuple[int, ...], list[tuple[str, int]]] = (), []
"""The directory that was read last, and its names: the next page is of the same one."""


def _names(directory: GuardedDirectory, path: str) -> list[tuple[str, int]]:
    """Return the names in the directory, with types, or raise ValueError for too many; read once while none change."""
    global _last
    allowance, counted = current_tool_context().allowance, count(1)

    def read_name() -> None:
        if allowance:
            allowance.spend(NAME_COST)
        if next(counted) > MAX_NAMES:
            raise ValueError(f"{path!r} holds more than {MAX_NAMES:,} entries: use file.glob or file.search")

    found = directory.stat(".")
    state = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
    before, names = _last
    if before != state or time.time_ns() - found.st_mtime_ns < UNSETTLED_NS:
        names = directory.names(read_name)
        if allowance:
            allowance.spend(ROW_COST * len(names))
        _last = (state, names) if len(names) > PAGE else ((), [])
    return names


def _row(guard: PathGuard, directory: GuardedDirectory, path: str, name: str) -> list[Any] | None:
    try:
        found = directory.stat(name)
    except FileNotFoundError:
        return None  # it is gone meanwhile
    return [name, *_numbers(found), _target(guard, path, name, found.st_mode)]


def _target(guard: PathGuard, path: str, name: str, mode: int) -> int | None:
    """Return the mode of what a link leads to; 0 when a program may not look there."""
    if not modes.S_ISLNK(mode):
        return None
    with suppress(OSError, ValueError), guard.place_to_look(f"{path}/{name}") as (directory, last):
        return directory.stat(last).st_mode
    return 0


def _require_empty(directory: GuardedDirectory, name: str) -> None:
    with directory.child(name) as inner:
        if inner.entries(hidden=True):
            raise OSError(os.strerror(errno.ENOTEMPTY))
