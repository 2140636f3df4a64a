"""The files that a server executes: what its command, arguments and environment name, and the modules beside them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path, PurePath

from ot.config.workspace_trust import LAUNCHER_FILES
from ot.execution.protected_names import fold
from ot.execution.protected_paths import Locked
from ot.execution.servers.server_place import runs_modules
from ot.execution.servers.server_spec import ServerSpec

PYTHON = (".py", ".pyc", ".pyw", ".pyz", ".so", ".pyd")
NODE = (".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx", ".node", ".wasm", "/package.json")
BESIDE = {**dict.fromkeys((".py", ".pyw"), PYTHON), **dict.fromkeys(NODE[:-1], NODE)}
"""By the ending of a script, the endings of what it may import from beside it."""

DIRECTORY_OPTIONS = frozenset(
    [
        "--directory",
        "--project",
        "--prefix",
        "--dir",
        "--cwd",
        "--chdir",
        "-C",
        "--from",
        "--with-editable",
        "--package",
    ]
)
"""Options of launchers whose value is a directory with a project to run."""
LAUNCHERS = re.compile(r"(?:python|pypy)[\d.]*w?|node|bun|bunx|deno|tsx|ts-node|npx|uvx|pnpx|pipx|go|ruby|php|perl")
SEARCHED = ("PYTHONPATH", "NODE_PATH")


def executed_by(spec: ServerSpec) -> Iterator[Locked]:
    """Yield what no program may write because *spec* executes it; a directory that is mere data is not among it."""
    why = f"the server '{spec.name}' executes it"
    cwd = Path(spec.cwd or spec.workspace or ".")
    words = [word for text in (spec.command, *spec.args) for word in _words(text)]
    named = [cwd / Path(word).expanduser() for word in [*words, *_environment(spec)] if _may_be_path(word)]
    for file in (path for path in named if not path.is_dir()):
        for path in dict.fromkeys((_beside_links(file), file.resolve())):
            yield Locked(path, why)
            if endings := BESIDE.get(path.suffix.lower()):
                yield _modules(path.parent, endings, why)
    for directory in _directories(spec, words, cwd):
        yield _modules(directory, (*PYTHON, *NODE, *(f"/{name}" for name in LAUNCHER_FILES)), why)


def _directories(spec: ServerSpec, words: list[str], cwd: Path) -> Iterator[Path]:
    """Yield the directories whose modules run: where a module is started, what an option names, ``node DIRECTORY``."""
    if not spec.private and runs_modules(spec.command, spec.args):
        yield cwd
    for name in SEARCHED:
        yield from (cwd / place for place in spec.env.get(name, "").split(os.pathsep) if place)
    for option, value in pairwise(words):
        if option in DIRECTORY_OPTIONS or option == "cd":
            yield cwd / Path(value).expanduser()
    if LAUNCHERS.fullmatch(PurePath(words[0]).stem if words else ""):
        # Only the first: what follows it is the server's own, and mere data.
        first = next((word for word in words[1:] if not word.startswith("-")), "")
        if first and (cwd / Path(first).expanduser()).is_dir():
            yield cwd / Path(first).expanduser()


def _modules(directory: Path, endings: Iterable[str], why: str) -> Locked:
    pattern = "|".join(re.escape(ending if ending.startswith(".") else fold(ending[1:])) for ending in endings)
    return Locked(directory, why, rf"(?s).*(?:{pattern})$")


def _words(text: str) -> list[str]:
    """Return the words of an argument: a whole command line for a shell has several, and so has ``--option=value``."""
    try:
        words = shlex.split(text) if " " in text else [text]
    except ValueError:
        words = text.split()
    return [part for word in words for part in (word.split("=", 1) if word.startswith("--") else [word]) if part]


def _environment(spec: ServerSpec) -> Iterator[str]:
    for value in spec.env.values():
        yield from (word for word in _words(value) if PurePath(word).is_absolute() and Path(word).is_file())


def _may_be_path(word: str) -> bool:
    return "/" in word or bool(PurePath(word).suffix)


def _beside_links(file: Path) -> Path:
    """Return *file* where it really lies, itself not followed: a link is executed under its own name, too."""
    return file.parent.resolve() / file.name
