"""Makes and removes groups below the server's own, and remembers nothing: their names tell whose they are."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ot.runtime.engines.cgroup_places import Place

OURS = re.compile(r"onetool-(\d+)-(\d+)-(?:\d+|server)")
"""The server's process and when it started, which together no other process ever is."""
GONE_SECONDS = 2.0


def make_group(place: Place) -> Path:
    """Return a new group at *place*, with its controllers.

    Raises:
        OSError: It cannot be made.
    """
    sweep(place.directory)
    if place.unified:
        _enable(place)
    for number in count():
        group = place.directory / own_name(str(number))
        with contextlib.suppress(FileExistsError):
            group.mkdir()
            return group
    raise AssertionError("numbers do not end")


def remove_group(group: Path, place: Place) -> bool:
    """Remove a group as soon as its last process has gone, and put back what was changed for it."""
    until = time.monotonic() + GONE_SECONDS
    while not _removed(group):
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    if place.unified:
        _put_back(place)
    return True


def sweep(directory: Path) -> None:
    """Remove the groups of servers that are gone; the kernel keeps those that somebody is in."""
    for group in _ours(directory):
        found = OURS.fullmatch(group.name)
        if found and started(int(found[1])) != int(found[2]):
            _removed(group)


def own_name(what: str) -> str:
    """Return the name of a group of this server."""
    return f"onetool-{os.getpid()}-{started(os.getpid())}-{what}"


def started(pid: int) -> int:
    """Return when a process started, in the kernel's ticks; -1 when there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    return int(text.rpartition(")")[2].split()[19])  # its name may have any characters


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _ours(directory: Path) -> Iterator[Path]:
    return (group for group in directory.iterdir() if OURS.fullmatch(group.name))


# ---------------------------------------------------------------- the unified hierarchy


def _enable(place: Place) -> None:
    """Let groups below have the controllers: then no process may be in the group itself, unless it is the root."""
    control = place.directory / "cgroup.subtree_control"
    wanted = " ".join(f"+{name}" for name in place.controllers)
    if set(place.controllers) <= set(control.read_text().split()):
        return
    try:
        control.write_text(wanted)
    except OSError:
        _step_aside(place.directory)
        try:
            control.write_text(wanted)
        except OSError:
            _put_back(place)
            raise


def _step_aside(directory: Path) -> None:
    """Move this process, and those that started it, into a group of their own; others are not ours to move."""
    aside = directory / own_name("server")
    aside.mkdir(exist_ok=True)
    present = set((directory / "cgroup.procs").read_text().split())
    for pid in _self_and_ancestors():
        if str(pid) in present:
            (aside / "cgroup.procs").write_text(str(pid))


def _put_back(place: Place) -> None:
    """Undo the step aside once no other group needs it."""
    aside = place.directory / own_name("server")
    if not aside.exists() or list(_ours(place.directory)) != [aside]:
        return
    with contextlib.suppress(OSError):  # else the group goes with the next sweep
        enabled = (place.directory / "cgroup.subtree_control").read_text().split()
        (place.directory / "cgroup.subtree_control").write_text(" ".join(f"-{name}" for name in enabled))
        for pid in (aside / "cgroup.procs").read_text().split():
            (place.directory / "cgroup.procs").write_text(pid)
        aside.rmdir()


def _self_and_ancestors() -> Iterator[int]:
    pid = os.getpid()
    while pid > 0:
        yield pid
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return
