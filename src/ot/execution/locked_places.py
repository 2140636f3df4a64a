"""The places of this machine and this configuration that no program may write, because what lies there is executed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from ot.config.paths import HOMES, Paths
from ot.config.workspace_trust import LAUNCHER_FILES, LAUNCHER_TREES
from ot.files.protected_paths import LockedPath, fold

OWN = "the server's own code lives there"
STARTED = "programs are started from there"
SETTINGS = "programs read their settings there, and many run what those name"
ABOVE = "npx, uv and similar launchers look there for a project to obey, above the servers' own directories"


def locked_places(paths: Paths, roots: Iterable[Path], code: Iterable[Path]) -> list[LockedPath]:
    """Return the places that are always locked; *code* is where the server's own packages are."""
    on_path = paths.environ.get("PATH", "").split(os.pathsep)
    working = [Path(os.path.realpath(root)) for root in roots]
    return [
        *(LockedPath(path, OWN) for path in code),
        *_unless_worked_in(_list_import_roots(), OWN, working),
        *_unless_worked_in(map(Path, filter(os.path.isabs, on_path)), STARTED, working),
        _settings(working),
        *_above(paths.global_dir / HOMES),
    ]


def pack_places(directories: Iterable[tuple[str, Path]], modules: Iterable[tuple[str, str]]) -> Iterator[LockedPath]:
    """Yield where packs are executed from: their *directories* by name, and the *modules* of those installed."""
    for name, directory in directories:
        yield LockedPath(directory, f"the pack '{name}' is executed from there")
    for name, module in modules:
        for place in _module_places(re.split(r"[.:]", module)[0]):
            yield LockedPath(Path(place), f"the pack '{name}' is executed from there")


def _module_places(module: str) -> list[str]:
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        return []
    if found is None:
        return []
    return list(found.submodule_search_locations or ()) or [found.origin or os.devnull]


def _list_import_roots() -> Iterator[Path]:
    environment = (sys.prefix,) if sys.prefix != sys.base_prefix else ()
    yield from (Path(entry).absolute() for entry in (*sys.path, *environment) if entry)


def _unless_worked_in(places: Iterable[Path], why: str, working: list[Path]) -> Iterator[LockedPath]:
    """Yield the *places*, but for one that holds an allowed directory, which must stay usable."""
    for place in dict.fromkeys(Path(os.path.realpath(place)) for place in places):
        if not any(root.is_relative_to(place) for root in working):
            yield LockedPath(place, why)


def _settings(working: list[Path]) -> LockedPath:
    home = Path(os.path.realpath(Path.home()))
    usable = {fold(root.relative_to(home).parts[0]) for root in working if root != home and root.is_relative_to(home)}
    exceptions = "|".join(re.escape(name) for name in sorted(usable)) or "(?!)"
    return LockedPath(home, SETTINGS, rf"(?!(?:{exceptions})(?:/|$))\.")


def _above(homes: Path) -> Iterator[LockedPath]:
    names = "|".join(re.escape("/".join(map(fold, name.split("/")))) for name in (*LAUNCHER_FILES, *LAUNCHER_TREES))
    yield from (
        LockedPath(directory, ABOVE, rf"(?:{names})(?:/|$)") for directory in Path(os.path.realpath(homes)).parents
    )
