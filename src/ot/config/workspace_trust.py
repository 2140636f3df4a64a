"""What a server that is started in a directory obeys there on sight, and the record that it was looked at."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ot.files.private_file import read_regular
from ot.visible_text import printable

LAUNCHER_FILES = (
    *(".npmrc", "package.json", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs"),
    *(".pnpmfile.cjs", ".pnpmfile.mjs", "pnpm-workspace.yaml", "bunfig.toml", "deno.json", "deno.jsonc"),
    *("uv.toml", "uv.lock", "pyproject.toml", "setup.py", "setup.cfg", "poetry.toml", "pdm.toml", "hatch.toml"),
    *(".python-version", ".python-versions", ".node-version", ".nvmrc", ".ruby-version", ".tool-versions"),
    *("mise.toml", ".mise.toml", ".envrc", ".env", "Gemfile", ".bundle/config", ".cargo/config.toml", ".cargo/config"),
    *("rust-toolchain", "rust-toolchain.toml", "go.work", "go.mod", "global.json", "nuget.config", "NuGet.Config"),
)
"""Files that npx, yarn, pnpm, bun, deno, uv and their kin obey in the directory that they start in, or above it."""

LAUNCHER_TREES = ("node_modules", ".yarn", ".venv", "venv")
"""Folders whose programs they prefer to those of the system."""

MODULES = (".py", ".pyc", ".so", ".pyd")
CACHES = "__pycache__"
MAX_FILE_BYTES = 16 << 20
MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class Seal:
    """The launcher files around *directory* as they were trusted; *modules* means top-level Python modules, too.

    The *script* is what the server's interpreter is given to run, where that lies in the workspace.
    """

    directory: str
    modules: bool
    files: Mapping[str, str] = field(repr=False)
    script: str = ""

    def changes(self, *, trees: bool = True) -> list[str]:
        """Return the changes since it was trusted; without *trees* the large folders are not checked."""
        found = launcher_files(Path(self.directory), modules=self.modules, script=self.script, trees=trees)
        trusted = {name: text for name, text in self.files.items() if trees or not text.startswith(TREE)}
        return list(changes(trusted, found))


TREE = "tree:"
"""Stands before the sum of a folder: of its names, sizes and times, since its content may be gigabytes."""


def launcher_files(directory: Path, *, modules: bool, script: str = "", trees: bool = True) -> dict[str, str]:
    """Return the sum of each file that a launcher started in *directory* would obey, by its path."""
    found = [place / name for place in _upwards(directory) for name in LAUNCHER_FILES]
    if modules:
        found += [path for path in _list_directory(directory) if path.suffix in MODULES]
    found += [Path(script)] if script else []
    sums = {str(path): text for path in found if (text := _sum(path))}
    return sums | (dict(_trees(directory, modules=modules)) if trees else {})


def changes(trusted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """Yield how what was *found* differs from what was *trusted*, name by name."""
    for name in sorted(trusted.keys() | found.keys()):
        if name not in found:
            yield f"{printable(name)} was removed"
        elif name not in trusted:
            yield f"{printable(name)} was added"
        elif trusted[name] != found[name]:
            yield f"{printable(name)} was changed"


def _upwards(directory: Path) -> Iterator[Path]:
    """Yield the directory and those above it, up to the user's own and the system's."""
    yield directory
    ends = {Path.home(), Path(directory.anchor)}
    for above in directory.parents if directory not in ends else ():
        if above in ends:
            return
        yield above


def _trees(directory: Path, *, modules: bool) -> Iterator[tuple[str, str]]:
    tops = [place / name for place in _upwards(directory) for name in LAUNCHER_TREES]
    if modules:
        tops += [path for path in _list_directory(directory) if (path / "__init__.py").exists()]
    for top in dict.fromkeys(tops):
        if top.is_dir():
            yield str(top), TREE + _tree_sum(top)


def _tree_sum(top: Path) -> str:
    digest = hashlib.sha256()
    try:
        for count, line in enumerate(_tree_lines(top)):
            digest.update(line.encode("utf-8", "surrogateescape"))
            if count > MAX_ENTRIES:
                return _never_the_same()
    except OSError:
        return _never_the_same()
    return digest.hexdigest()


def _tree_lines(top: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(top):
        # Caches of compiled modules are neither read nor written there: the server is given a place of its own.
        folders[:] = sorted(name for name in folders if name != CACHES)
        for name in sorted([*folders, *files]):
            path = f"{folder}/{name}"
            found = os.lstat(path)
            times = "" if stat.S_ISDIR(found.st_mode) else f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
            yield f"{path}\0{found.st_mode} {times}\0"


def _sum(path: Path) -> str:
    try:
        found = read_regular(path, MAX_FILE_BYTES, follow=True)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return _never_the_same()
    return hashlib.sha256(found.data).hexdigest() if len(found.data) <= MAX_FILE_BYTES else _never_the_same()


def _never_the_same() -> str:
    """Return a sum that no other equals: what cannot be looked at whole is not covered."""
    return os.urandom(8).hex()


def _list_directory(directory: Path) -> Iterable[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return ()
