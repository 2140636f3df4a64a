"""Copies, moves and removes files and what lies below directories; all is looked at before anything is changed."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import BinaryIO

from ot.files.guarded_directory import GuardedDirectory
from ot.files.path_guard import PathGuard
from ot.files.run_writes import current_writes
from ot_tools._tree_walk import MAX_DEPTH, WalkDeadline

BLOCK = 1 << 20
ENTRY_COST = 200
"""What it costs to look at an entry, and to copy, move or remove it."""
MAX_ENTRIES = 50_000
"""Entries that are copied, moved or removed in one call; more would not be done before the deadline."""

Found = tuple[str, str]
"""The way of an entry below the top, and its type."""


def delete_tree(guard: PathGuard, path: str, deadline: WalkDeadline, *, recursive: bool) -> tuple[str, int]:
    """Remove what is at *path*; return its type, and how many files, links and directories that were."""
    with guard.place_to_change(path) as (directory, name):
        kind = _kind(directory, name)
        found = [*_below(directory, name, deadline)] if kind == "directory" and recursive else []
        # What lies deepest comes last in the walk, and must go first.
        for way, _ in reversed(found):
            deadline.check()
            with ExitStack() as opened:
                parent, last = _parent(directory, f"{name}/{way}", opened)
                parent.remove(last)
        directory.remove(name)
        return kind, len(found) + 1


def copy_tree(guard: PathGuard, source: str, target: str, deadline: WalkDeadline, *, overwrite: bool) -> int:
    """Copy the file or directory *source* to the path *target*; return how many files that were."""
    with guard.place_to_look(source) as (directory, name):
        if directory.status(name).type != "directory":
            _copy_file(guard, directory.open_file(name), target, deadline, overwrite=overwrite)
            return 1
        found = [*_below(directory, name, deadline, change=False)]
        _begin(guard, source, target, found, overwrite=overwrite)
        for way, kind in found:
            deadline.check()
            with ExitStack() as opened:
                parent, last = _parent(directory, f"{name}/{way}", opened)
                if kind == "directory":
                    make_directory(guard, f"{target}/{way}")
                else:
                    _copy_file(guard, parent.open_file(last), f"{target}/{way}", deadline, overwrite=overwrite)
        return sum(kind == "file" for _, kind in found)


def move_tree(guard: PathGuard, source: str, target: str, deadline: WalkDeadline, *, overwrite: bool) -> int:
    """Move the file or directory *source* to the path *target*; return how many files that were.

    Of a directory, what it holds is moved, file by file: an open directory stays where it was checked.
    """
    with guard.place_to_change(source) as (directory, name):
        if _kind(directory, name) != "directory":
            with guard.place_to_change(target, file=True, make=True) as (there, new):
                directory.move_file(name, there, new, overwrite=overwrite)
            return 1
        found = [*_below(directory, name, deadline)]
        _begin(guard, source, target, found, overwrite=overwrite)
        for way, kind in found:
            deadline.check()
            if kind == "directory":
                make_directory(guard, f"{target}/{way}")
                continue
            with ExitStack() as opened:
                parent, last = _parent(directory, f"{name}/{way}", opened)
                there, new = opened.enter_context(guard.place_to_change(f"{target}/{way}"))
                parent.move_file(last, there, new, overwrite=overwrite)
        # By now they are empty: what came meanwhile keeps its directory.
        for way in [*(way for way, kind in reversed(found) if kind == "directory"), ""]:
            with ExitStack() as opened:
                parent, last = _parent(directory, f"{name}/{way}".rstrip("/"), opened)
                parent.remove(last)
    return sum(kind == "file" for _, kind in found)


def make_directory(guard: PathGuard, path: str) -> bool:
    """Make the directory *path*, and those above it that are missing; return whether it is new."""
    with guard.place_to_change(path, make=True) as (directory, name):
        if name == ".":
            return False
        current_writes().spend(0)
        try:
            directory.make_child(name)
        except FileExistsError:
            if directory.status(name).type != "directory":
                raise FileExistsError("something else has that name") from None
            return False
        return True


def _begin(guard: PathGuard, source: str, target: str, found: list[Found], *, overwrite: bool) -> None:
    """Make the target's directory, if *found* holds nothing but files and directories whose names may be written.

    Raises:
        FileExistsError: The target exists, and is not to be filled up.
        PermissionError: A link or a device lies below the source.
    """
    for way, kind in found:
        if kind not in ("file", "directory"):
            raise PermissionError(f"{way!r} below it is a {kind}: only files and directories are copied and moved")
    if guard.real(target).is_relative_to(guard.real(source)):
        raise ValueError(f"{target!r} lies inside {source!r}")
    guard.require_agreed((target,), below=("", *(way for way, _ in found)))
    if not make_directory(guard, target) and not overwrite:
        raise FileExistsError(f"{target!r} exists: give overwrite=True to replace files in it")


def _below(directory: GuardedDirectory, name: str, deadline: WalkDeadline, *, change: bool = True) -> Iterator[Found]:
    """Yield what lies below *name*, a directory before what it holds; with *change* refuse what must stay."""
    numbers = count(1)

    def read_name() -> None:
        deadline.spend(ENTRY_COST)
        if next(numbers) > MAX_ENTRIES:
            raise ValueError(f"{name!r} holds more than {MAX_ENTRIES:,} entries: take its directories one by one")

    with directory.child(name) as top:
        yield from _walk(top, "", deadline, read_name, change, 1)


def _walk(
    top: GuardedDirectory, way: str, deadline: WalkDeadline, read_name: Callable[[], None], change: bool, depth: int
) -> Iterator[Found]:
    if depth > MAX_DEPTH:
        raise ValueError(f"{way[:200]!r} lies more than {MAX_DEPTH} directories deep")
    if change:
        top.refuse_code(environments=True)
    for entry in top.entries(read_name, hidden=change):
        deadline.check()
        if change:
            top.require_changeable(entry.name)
        yield f"{way}{entry.name}", entry.type
        if entry.type == "directory":
            with top.child(entry.name) as inner:
                yield from _walk(inner, f"{way}{entry.name}/", deadline, read_name, change, depth + 1)


def _parent(directory: GuardedDirectory, way: str, opened: ExitStack) -> tuple[GuardedDirectory, str]:
    *names, last = way.split("/")
    for name in names:
        directory = opened.enter_context(directory.child(name))
    return directory, last


def _kind(directory: GuardedDirectory, name: str) -> str:
    mode = directory.require_changeable(name).st_mode
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "file"


def _copy_file(guard: PathGuard, stream: BinaryIO, target: str, deadline: WalkDeadline, *, overwrite: bool) -> None:
    with stream, guard.place_to_change(target, file=True, make=True) as (there, new):
        if not overwrite and there.has(new):
            raise FileExistsError("it exists: give overwrite=True to replace it")
        with there.replace_file(new) as file:
            while block := stream.read(BLOCK):
                deadline.check()
                current_writes().spend(len(block))
                file.write(block)
