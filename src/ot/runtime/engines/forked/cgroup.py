"""JailGroup: the control group of one zygote and all its children, below the server's own.

First the group itself, then how groups are made and removed, then where the server's own groups are.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath

logger = logging.getLogger(__name__)

SHELL = "/bin/sh"
JOIN = 'while [ "$1" != -- ]; do { echo 0 > "$1"; } 2>/dev/null; shift; done; shift; exec "$@"'
"""A process that puts itself in before it becomes the zygote has no child yet that would stay outside."""
NEEDED = {"pids": "start processes without end", "memory": "use all memory together with other programs"}
"""Without these the layer does not hold; the share of the processor only keeps the server quick."""
MAX_THREADS = 4096
"""Of all programs together: the controller counts threads as processes, and no bomb of threads may hinder a fork."""
FIRST_TO_GO = "500"
SHARE_OF_MACHINE = 0.75
BASE_BYTES = 256 << 20
"""Beside what the zygote itself uses: what the kernel keeps for the children."""
PROCESSOR = {"cpu.weight": "50", "cpu.shares": "1024"}
"""Half of what the server's own group has. In version 1 there is none: all programs together weigh as one process, for
with less they would starve beside everything else that the machine does."""


@dataclass(frozen=True)
class GroupReport:
    """What a zygote's group limits, and by controller why it does not."""

    held: tuple[str, ...]
    why_not: Mapping[str, str]

    @property
    def missing(self) -> list[str]:
        """What a program could do that the layer should have stopped."""
        return [could for controller, could in NEEDED.items() if controller not in self.held]

    @property
    def why(self) -> str:
        """Why it does not limit everything, in one line."""
        lacking: dict[str, list[str]] = {}
        for controller, why in self.why_not.items():
            lacking.setdefault(why, []).append(controller)
        return "; ".join(f"{', '.join(controllers)}: {why}" for why, controllers in lacking.items())


class JailGroup:
    """Groups in every hierarchy where they are available; a zygote joins them before it starts."""

    def __init__(self, places_for_programs: int, places: Places | None = None) -> None:
        """Make the groups, for so many processes at a time, and remove those of servers that are gone."""
        self._programs = places_for_programs
        self._each = 0
        self._kills = 0
        places = own_places() if places is None else places
        self._why_not = dict(places.why_not)
        self._made: list[tuple[Path, GroupPlace]] = []
        for place in places.found:
            self._make(place)

    def _make(self, place: GroupPlace) -> None:
        try:
            if not os.access(SHELL, os.X_OK):
                raise FileNotFoundError(2, f"there is no {SHELL}")
            group = make_group(place)
            self._made.append((group, place))
            self._limit(group, place.controllers)
        except OSError as error:
            why = "other processes are in the group" if error.errno == errno.EBUSY else error.strerror
            self._why_not |= dict.fromkeys(place.controllers, f"{place.directory}: {why}")

    def _limit(self, group: Path, controllers: Sequence[str]) -> None:
        if "pids" in controllers:
            (group / "pids.max").write_text(str(self._programs + MAX_THREADS))
        if "cpu" in controllers:
            for name, value in PROCESSOR.items():
                _write_where_it_is(group / name, value)
        if "memory" in controllers:
            _limit_memory(group, most_memory(group.parent))

    def joining(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Return *argv* as a command that joins the groups first."""
        files = [str(group / "cgroup.procs") for group, _ in self._made]
        return (SHELL, "-c", JOIN, "join", *files, "--", *argv) if files else tuple(argv)

    def report(self, pid: int) -> GroupReport:
        """Return the limits of the process, which itself says which groups it is in."""
        inside = text_of(Path(f"/proc/{pid}/cgroup")).splitlines()
        held: list[str] = []
        why_not = dict(self._why_not)
        for group, place in self._made:
            joined = any(line.endswith(f"/{group.name}") and _is_of(line, place) for line in inside)
            for controller in place.controllers:
                if joined and controller not in self._why_not:
                    held.append(controller)
                else:
                    why_not.setdefault(controller, f"the zygote could not join {group}")
        return GroupReport(tuple(held), why_not)

    # ---------------------------------------------------------------- memory

    def allow(self, memory_bytes: int) -> None:
        """Give all programs together what as many can use as run at a time, if each may use so much."""
        if memory_bytes <= self._each:
            return
        self._each = memory_bytes
        if group := self._of("memory"):
            used = int(text_of(group / "memory.current") or text_of(group / "memory.usage_in_bytes") or 0)
            wanted = used + BASE_BYTES + self._programs * memory_bytes
            with contextlib.suppress(OSError):  # then the limit that it has stays
                _limit_memory(group, min(wanted, most_memory(group.parent)))

    def offer(self, pid: int) -> None:
        """Let the kernel end this child before the zygote when memory runs out; only root may say so."""
        if self._of("memory"):
            with contextlib.suppress(OSError):  # else it ends the largest, which the zygote hardly ever is
                Path(f"/proc/{pid}/oom_score_adj").write_text(FIRST_TO_GO)

    def was_out_of_memory(self) -> bool:
        """Return whether the kernel has ended a process for memory, once for each that it has."""
        group = self._of("memory")
        kills = _number(group, "oom_kill", "memory.events", "memory.oom_control") if group else 0
        found = kills > self._kills
        self._kills += found
        return found

    def _of(self, controller: str) -> Path | None:
        return next((group for group, place in self._made if controller in place.controllers), None)

    # ---------------------------------------------------------------- the end

    def remove(self) -> None:
        """Remove the groups, whose processes have been ended."""
        for group, place in self._made:
            if not remove_group(group, place):
                logger.debug("the group %s is left to the next start: somebody is still in it", group)
        self._made.clear()


def most_memory(own: Path) -> int:
    """Return the most memory for programs, of the machine's or of the server's own group."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for group in (own, *own.parents):
        found += [int(text) for text in [text_of(group / "memory.max").strip()] if text.isdigit()]
    found += [_number(own, "hierarchical_memory_limit", "memory.stat") or found[0]]
    return int(min(found) * SHARE_OF_MACHINE)


def _limit_memory(group: Path, most_bytes: int) -> None:
    if (group / "memory.max").exists():
        (group / "memory.max").write_text(str(most_bytes))
        return _write_where_it_is(group / "memory.swap.max", "0")
    # The limit with swap may never be below the one without: which comes first depends on which way they go.
    with contextlib.suppress(OSError):
        (group / "memory.limit_in_bytes").write_text(str(most_bytes))
    _write_where_it_is(group / "memory.memsw.limit_in_bytes", str(most_bytes))
    (group / "memory.limit_in_bytes").write_text(str(most_bytes))
    return None


def _write_where_it_is(path: Path, value: str) -> None:
    if path.exists():
        path.write_text(value)


def _is_of(line: str, place: GroupPlace) -> bool:
    names = line.split(":", 2)[1]
    return not names if place.unified else place.controllers[0] in names.split(",")


def _number(group: Path, key: str, *files: str) -> int:
    for line in (line for name in files for line in text_of(group / name).splitlines()):
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0


# ---------------------------------------------------------------- groups are known by their names

OURS = re.compile(r"onetool-(\d+)-(\d+)-(?:\d+|server)")
"""The server's process and when it started, which together no other process ever is."""
GONE_SECONDS = 2.0


def make_group(place: GroupPlace) -> Path:
    """Return a new group at *place*, with its controllers; raise OSError if it cannot be made."""
    sweep(place.directory)
    if place.unified:
        _enable(place)
    for number in count():
        group = place.directory / own_name(str(number))
        with contextlib.suppress(FileExistsError):
            group.mkdir()
            return group
    raise AssertionError("unreachable: the counter is exhausted")


def remove_group(group: Path, place: GroupPlace) -> bool:
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
        if found and get_start_time(int(found[1])) != int(found[2]):
            _removed(group)


def own_name(what: str) -> str:
    """Return the name of a group of this server."""
    return f"onetool-{os.getpid()}-{get_start_time(os.getpid())}-{what}"


def get_start_time(pid: int) -> int:
    """Return when a process started, in the kernel's ticks; -1 when there is none."""
    return int(_status(pid)[19])


def _status(pid: int) -> list[str]:
    """Return the kernel's data on a process after its name, which may contain any character."""
    text = text_of(Path(f"/proc/{pid}/stat"))
    return text.rpartition(")")[2].split() if text else ["-1"] * 20


def _removed(group: Path) -> bool:
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def _ours(directory: Path) -> Iterator[Path]:
    return (group for group in directory.iterdir() if OURS.fullmatch(group.name))


def _enable(place: GroupPlace) -> None:
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


def _put_back(place: GroupPlace) -> None:
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
        pid = int(_status(pid)[1])


# ---------------------------------------------------------------- where the server's own groups are

PROC, RUN = Path("/proc"), Path("/run")
WANTED = ("pids", "memory", "cpu")
DELEGATED = ("user.delegate", "trusted.delegate")
"""With either mark systemd tells that a group was handed to whoever runs in it; a user's own systemd sets none."""
DELEGATE = re.compile(r"^Delegate=(?!(?:no|n|false|f|off|0)?$)", re.MULTILINE)
SERVER = re.compile(r"onetool-\d+-\d+-server")


@dataclass(frozen=True)
class GroupPlace:
    """The server's own group in one hierarchy, where it may make others for these controllers."""

    directory: Path
    controllers: tuple[str, ...]
    unified: bool


@dataclass(frozen=True)
class Places:
    """Where groups may be made, and for each controller without such a place, why there is none."""

    found: tuple[GroupPlace, ...]
    why_not: Mapping[str, str]


@dataclass(frozen=True)
class _Mount:
    root: str
    point: str
    controllers: frozenset[str]
    unified: bool


def own_places(proc: Path = PROC, run: Path = RUN) -> Places:
    """Return where this process may make groups."""
    found: dict[Path, GroupPlace] = {}
    why_not: dict[str, str] = {}
    mounts = list(_mounts(proc))
    groups = list(_own_groups(proc))
    for controller in WANTED:
        place = _place(controller, mounts, groups, run)
        if isinstance(place, str):
            why_not[controller] = place
        else:
            known = found.get(place.directory, place).controllers
            found[place.directory] = GroupPlace(place.directory, (*dict.fromkeys((*known, controller)),), place.unified)
    return Places(tuple(found.values()), why_not)


def _place(
    controller: str, mounts: list[_Mount], groups: list[tuple[frozenset[str], str]], run: Path
) -> GroupPlace | str:
    """Return the place for *controller*, or why there is none."""
    for mount in mounts:
        group = next((path for names, path in groups if (not names if mount.unified else controller in names)), None)
        if group is None or not (mount.unified or controller in mount.controllers):
            continue
        directory = _below(mount, group)
        if directory is None:
            return f"the server's own group {group} is not mounted"
        if mount.unified and controller not in text_of(directory / "cgroup.controllers").split():
            continue
        return _why_not(directory, Path(mount.point), run) or GroupPlace(directory, (controller,), mount.unified)
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
        with contextlib.suppress(OSError):
            if os.getxattr(directory, name) == b"1":
                return True
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


def text_of(path: Path) -> str:
    """Return the text of a kernel file, or nothing if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
