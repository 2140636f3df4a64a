"""JailGroup: the control group of one zygote and all its children, below the server's own."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ot.runtime.engines.cgroup_places import Place, Places, own_places, text_of
from ot.runtime.engines.cgroup_tree import make_group, remove_group

logger = logging.getLogger(__name__)

SHELL = "/bin/sh"
JOIN = 'while [ "$1" != -- ]; do { echo 0 > "$1"; } 2>/dev/null; shift; done; shift; exec "$@"'
"""A process that puts itself in before it becomes the zygote has no child yet that would stay outside."""
NEEDED = {"pids": "start processes without end", "memory": "use all memory together with other programs"}
"""Without these the layer does not hold; the share of the processor only keeps the server quick."""
MOST_THREADS = 4096
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
        reasons = dict.fromkeys(self.why_not.values())
        return "; ".join(f"{', '.join(self._lacking(reason))}: {reason}" for reason in reasons)

    def _lacking(self, reason: str) -> list[str]:
        return [controller for controller, why in self.why_not.items() if why == reason]


class JailGroup:
    """Groups in every hierarchy where they can be had; a zygote joins them before it starts."""

    def __init__(self, places_for_programs: int, places: Places | None = None) -> None:
        """Make the groups, for so many processes at a time, and remove those of servers that are gone."""
        self._programs = places_for_programs
        self._each = 0
        self._kills = 0
        places = own_places() if places is None else places
        self._why_not = dict(places.why_not)
        self._made: list[tuple[Path, Place]] = []
        for place in places.found:
            self._make(place)

    def _make(self, place: Place) -> None:
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
            (group / "pids.max").write_text(str(self._programs + MOST_THREADS))
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
        """Return what limits the process: it says itself which groups it is in."""
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
    """Return how much of the machine, or of what the server's own group may use, programs get at most."""
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


def _is_of(line: str, place: Place) -> bool:
    names = line.split(":", 2)[1]
    return not names if place.unified else place.controllers[0] in names.split(",")


def _number(group: Path, key: str, *files: str) -> int:
    for line in (line for name in files for line in text_of(group / name).splitlines()):
        name, _, value = line.partition(" ")
        if name == key:
            return int(value)
    return 0
