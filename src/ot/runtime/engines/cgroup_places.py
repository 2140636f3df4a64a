"""Where the server's own control groups are, and whether it may make groups below them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PROC, RUN = Path("/proc"), Path("/run")
WANTED = ("pids", "memory", "cpu")
DELEGATED = ("user.delegate", "trusted.delegate")
"""With either mark systemd tells that a group was handed to whoever runs in it; a user's own systemd sets none."""
DELEGATE = re.compile(r"^Delegate=(?!(?:no|n|false|f|off|0)?$)", re.MULTILINE)
SERVER = re.compile(r"onetool-\d+-\d+-server")


@dataclass(frozen=True)
class Place:
    """The server's own group in one hierarchy, where it may make others for these controllers."""

    directory: Path
    controllers: tuple[str, ...]
    unified: bool


@dataclass(frozen=True)
class Places:
    """Where groups may be made, and for each controller without such a place, why there is none."""

    found: tuple[Place, ...]
    why_not: Mapping[str, str]


@dataclass(frozen=True)
class _Mount:
    root: str
    point: str
    controllers: frozenset[str]
    unified: bool


def own_places(proc: Path = PROC, run: Path = RUN) -> Places:
    """Return where this process may make groups."""
    found: dict[Path, Place] = {}
    why_not: dict[str, str] = {}
    mounts = list(_mounts(proc))
    groups = list(_own_groups(proc))
    for controller in WANTED:
        place = _place(controller, mounts, groups, run)
        if isinstance(place, str):
            why_not[controller] = place
        else:
            known = found.get(place.directory, place).controllers
            found[place.directory] = Place(place.directory, (*dict.fromkeys((*known, controller)),), place.unified)
    return Places(tuple(found.values()), why_not)


def _place(controller: str, mounts: list[_Mount], groups: list[tuple[frozenset[str], str]], run: Path) -> Place | str:
    """Return the place for *controller*, or why there is none."""
    for mount in mounts:
        group = next((path for names, path in groups if (not names if mount.unified else controller in names)), None)
        if group is None or not (mount.unified or controller in mount.controllers):
            continue
        directory = _below(mount, group)
        if directory is None:
            return f"the server's own group {group} is not mounted"
        if mount.unified and controller not in _words(directory / "cgroup.controllers"):
            continue
        return _why_not(directory, Path(mount.point), run) or Place(directory, (controller,), mount.unified)
    return "no hierarchy with this controller reaches the server"


def _below(mount: _Mount, group: str) -> Path | None:
    try:
        inside = PurePosixPath(group).relative_to(mount.root)
    except ValueError:
        return None
    directory = Path(mount.point, inside)
    # The server has moved into a group of its own already, to have another beside it.
    return directory.parent if mount.unified and SERVER.fullmatch(directory.name) else directory


def _why_not(directory: Path, root: Path, run: Path) -> str:
    """Return why no group may be made below *directory*: each group has one writer, who made it or was given it."""
    if directory != root and not _is_marked(directory) and not _is_delegated_scope(directory, run):
        return f"the server's own group {directory} belongs to whoever made it and is not delegated"
    if not os.access(directory, os.W_OK) or not os.access(directory / "cgroup.procs", os.W_OK):
        return f"{directory} cannot be written to"
    return ""


def _is_delegated_scope(directory: Path, run: Path) -> bool:
    """Whether the user's own systemd was asked to hand over the group when it was made."""
    unit = run / "user" / str(os.getuid()) / "systemd" / "transient" / directory.name
    return directory.suffix in (".scope", ".service") and DELEGATE.search(text_of(unit)) is not None


def _is_marked(directory: Path) -> bool:
    for name in DELEGATED:
        try:
            if os.getxattr(directory, name) == b"1":
                return True
        except OSError:
            continue
    return False


def _own_groups(proc: Path) -> Iterator[tuple[frozenset[str], str]]:
    """Yield the controllers and the path of each group of this process; the unified hierarchy names none."""
    for line in text_of(proc / "self" / "cgroup").splitlines():
        _, names, path = line.split(":", 2)
        yield frozenset(names.split(",")) - {""}, path


def _mounts(proc: Path) -> Iterator[_Mount]:
    for line in text_of(proc / "self" / "mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(" "), after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            yield _Mount(_plain(fields[3]), _plain(fields[4]), frozenset(options.split(",")), kind == "cgroup2")


def _plain(path: str) -> str:
    """Return a path of mountinfo, where spaces and the like are written as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def _words(path: Path) -> list[str]:
    return text_of(path).split()


def text_of(path: Path) -> str:
    """Return what a file of the kernel's says, or nothing where it says nothing to us."""
    try:
        return path.read_text()
    except OSError:
        return ""
