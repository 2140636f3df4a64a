"""What installed plugins bring: entry points of the groups ``onetool.*``, read without importing them.

It is read at every start, also by ``onetool --help``, so it imports nothing itself.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PACKS, COMMANDS, SETTINGS = "onetool.packs", "onetool.commands", "onetool.settings"
STORES, OBSERVERS = "onetool.stores", "onetool.observers"
EDGES, FINDINGS = "onetool.edges", "onetool.findings"
OURS = b"[onetool."
"""How a line begins in the file of a distribution that has entry points for us."""

type _State = tuple[tuple[str, int], ...]
_read: dict[_State, tuple[Hook, ...]] = {}
"""The hooks as they were found on one state of the path: an installer changes the folder it writes to."""


class Hook:
    """One entry point: the *name* that it gives to the object, or the module, which *value* says."""

    def __init__(self, distribution: str, group: str, name: str, value: str) -> None:
        """Take what stands in the file of *distribution*."""
        self.distribution, self.group, self.name, self.value = distribution, group, name, value
        module, _, attribute = value.partition(":")
        self.module, self.attribute = module.strip(), attribute.strip()

    def load(self) -> Any:
        """Import the module, and return the object."""
        from importlib import import_module  # noqa: PLC0415 - whoever only wants names does not pay for it

        found: Any = import_module(self.module)
        for name in filter(None, self.attribute.split(".")):
            found = getattr(found, name)
        return found


def hooks(group: str) -> list[Hook]:
    """Return the entry points of *group*, by distribution; of two copies of one the first on the path counts."""
    return [hook for hook in _known() if hook.group == group]


def hook_named(group: str, name: str) -> Hook | None:
    """Return the entry point of that name, if there is one."""
    return next((hook for hook in hooks(group) if hook.name == name), None)


def packages() -> list[str]:
    """Return the packages that have hooks, ours aside."""
    return sorted({hook.module.partition(".")[0] for hook in _known()} - {"ot"})


def read_sections(text: str) -> dict[str, dict[str, str]]:
    """Return the ``key = value`` lines under each ``[heading]``: the form of entry points and of ``commands.ini``."""
    sections: dict[str, dict[str, str]] = {}
    here: dict[str, str] = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            here = sections.setdefault(line[1:-1].strip(), {})
        elif line and not line.startswith(("#", ";")):
            key, _, value = line.partition("=")
            here[key.strip()] = value.strip()
    return sections


def _known() -> tuple[Hook, ...]:
    state = tuple((place, _changed(place)) for place in dict.fromkeys(sys.path))
    if state not in _read:
        _read.clear()
        _read[state] = tuple(_all_hooks())
    return _read[state]


def _all_hooks() -> list[Hook]:
    found: dict[str, list[Hook]] = {}
    for folder in _folders():
        # As for an import, the first of two copies on the path counts.
        distribution = folder.rpartition("/")[2].partition("-")[0]
        if distribution not in found and (text := _entry_points(folder)):
            found[distribution] = [
                Hook(distribution, group, name, value)
                for group, rows in read_sections(text).items()
                if group.startswith("onetool.")
                for name, value in rows.items()
            ]
    return [hook for distribution in sorted(found) for hook in found[distribution]]


def _folders() -> list[str]:
    found: list[str] = []
    for place in dict.fromkeys(sys.path):
        try:
            with os.scandir(place or ".") as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(".dist-info"))
            found += [f"{place or '.'}/{name}" for name in names]
        except OSError:
            continue
    return found


def _entry_points(folder: str) -> str:
    """Return the file with the entry points if it has any of OneTool's: parsing all took 15 ms per start."""
    try:
        with open(f"{folder}/entry_points.txt", "rb") as file:  # noqa: PTH123 - a Path takes four times as long
            written = file.read()
    except OSError:
        return ""
    return written.decode(errors="replace") if OURS in written else ""


def _changed(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns  # noqa: PTH116 - as above
    except OSError:
        return 0
