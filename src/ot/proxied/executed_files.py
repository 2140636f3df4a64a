"""The files that a server executes: what its command, arguments and environment name, and the modules beside them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path, PurePath

from ot.config.paths import expand_home
from ot.config.workspace_trust import LAUNCHER_FILES
from ot.files.protected_paths import LockedPath, fold
from ot.proxied.place import runs_modules
from ot.proxied.spec import ServerSpec

PYTHON = (".py", ".pyc", ".pyw", ".pyz", ".so", ".pyd")
NODE = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx", ".node", ".wasm", "/package.json")
BESIDE = {**dict.fromkeys((".py", ".pyw"), PYTHON), **dict.fromkeys(NODE[:-1], NODE)}
"""By the ending of a script, the endings of what it may import from beside it."""

PROJECT = (*PYTHON, *NODE, *(f"/{name}" for name in LAUNCHER_FILES))
"""What runs of a directory that is a project."""

DIRECTORY_OPTIONS = frozenset(
    {
        *("--directory", "--project", "--prefix", "--dir", "--cwd", "--chdir", "-C"),
        *("--from", "--with-editable", "--package"),
    }
)
"""Options of launchers whose value is a directory with a project to run."""
LAUNCHERS = re.compile(r"(?:python|pypy)[\d.]*w?|node|bun|bunx|deno|tsx|ts-node|npx|uvx|pnpx|pipx|go|ruby|php|perl")
SEARCHED = {"PYTHONPATH": PYTHON, "NODE_PATH": NODE}
"""Variables with directories of modules."""


def list_executed_files(spec: ServerSpec) -> Iterator[LockedPath]:
    """Yield what no program may write because *spec* executes it; a directory that is mere data is not among it."""
    why = f"the server '{spec.name}' executes it"
    words = list(_place_words(spec))
    named = [base / expand_home(word) for base, word in words if "/" in word or PurePath(word).suffix]
    for file in (path for path in [*named, *_of_environment(spec)] if not path.is_dir()):
        # Where it really lies, itself not followed, too: a link is executed under its own name.
        for path in dict.fromkeys((file.parent.resolve() / file.name, file.resolve())):
            yield LockedPath(path, why)
            if endings := BESIDE.get(path.suffix.lower()):
                yield _modules(path.parent, endings, why)
    for directory, endings in _directories(spec, words):
        yield _modules(directory, endings, why)


def _place_words(spec: ServerSpec) -> Iterator[tuple[Path, str]]:
    """Yield the words of the command line, each with the directory from which it would be a path."""
    for text in (spec.command, *spec.args):
        base, before = Path(spec.cwd or spec.workspace or "."), ""
        for word in _words(text):
            yield base, word
            base = base / expand_home(word) if before == "cd" else base
            before = word


def _directories(spec: ServerSpec, words: list[tuple[Path, str]]) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the directories whose modules run: where a module is started, what an option names, ``node DIRECTORY``."""
    command, *args = [word for _, word in words] or [""]
    start = words[-1][0] if words else Path()
    # Below a directory that holds the whole workspace no module is found by a name that anybody imports.
    is_private = spec.private and str(start) == spec.cwd
    if runs_modules(command, args) and start not in Path(spec.workspace).parents and not is_private:
        yield start, PYTHON
    for name, endings in SEARCHED.items():
        yield from ((start / place, endings) for place in spec.env.get(name, "").split(os.pathsep) if place)
    for (_, option), (base, value) in pairwise(words):
        if option in DIRECTORY_OPTIONS:
            yield base / expand_home(value), PROJECT
    if LAUNCHERS.fullmatch(PurePath(command).stem):
        # Only the first: what follows it is the server's own, and mere data.
        first = next((base / expand_home(word) for base, word in words[1:] if not word.startswith("-")), None)
        if first and first.is_dir():
            yield first, PROJECT


def _modules(directory: Path, endings: Iterable[str], why: str) -> LockedPath:
    pattern = "|".join(re.escape(ending if ending.startswith(".") else fold(ending[1:])) for ending in endings)
    return LockedPath(directory, why, rf"(?s).*(?:{pattern})$")


def _words(text: str) -> list[str]:
    """Return the words of an argument: a whole command line for a shell has several, and so has ``--option=value``."""
    try:
        words = shlex.split(text) if " " in text else [text]
    except ValueError:
        words = text.split()
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word]) if part]


def _of_environment(spec: ServerSpec) -> Iterator[Path]:
    words = (word for value in spec.env.values() for word in _words(value))
    yield from (Path(word) for word in words if PurePath(word).is_absolute() and Path(word).is_file())
