"""Where another client's server starts, and what it finds from there: with OneTool both have to be written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

from ot.config.clients.found_server import Scope
from ot.config.expand import WORKSPACE

MAX_PATH = 1000
HERE = f"${{{WORKSPACE}}}"
RUNNERS = frozenset({"npx", "uvx", "bunx", "pnpx", "npm", "pnpm", "yarn", "pipx", "docker", "podman"})
"""Programs whose words name packages: a directory of the same name must not become what they run."""


def cwd_here(cwd: str, scope: Scope, notes: list[str]) -> str:
    """Return *cwd* as it is written here: a project's server starts in its project, a relative path is below it."""
    if cwd.startswith(HERE) or PurePath(cwd).is_absolute() or cwd.startswith(("~", "${")):
        return cwd
    if not cwd and scope == "user":
        return ""
    placed = _below(cwd or ".")
    notes.append(f"cwd: {f'{cwd} became {placed}' if cwd else f'{placed} was added, where that client starts it'}")
    notes.append("it starts in a directory that has to be trusted for it: run 'onetool trust' there")
    return placed


def words_here(command: str, words: Sequence[str], cwd: Path, notes: list[str]) -> list[str]:
    """Return the arguments of a user's server, with those that are paths from *cwd* as paths from the workspace."""
    runner = PurePath(command).stem in RUNNERS
    return [_placed_word(word, cwd, notes, packages=runner) for word in words]


def _placed_word(word: str, cwd: Path, notes: list[str], *, packages: bool) -> str:
    option, equals, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
    if not _is_path(value, cwd, packages=packages):
        return word
    placed = f"{option}{equals}{_below(value)}"
    notes.append(f"args: {word} became {placed}")
    return placed


def _is_path(text: str, cwd: Path, *, packages: bool) -> bool:
    if text in (".", "./"):
        return True
    explicit = text.startswith(("./", "../"))
    likely = not packages and text[:1] not in "-@/~$" and ("/" in text or bool(PurePath(text).suffix))
    return (explicit or likely) and "\0" not in text and len(text) < MAX_PATH and (cwd / text).exists()


def _below(path: str) -> str:
    rest = path.removeprefix("./").removeprefix(".") if path in (".", "./") or path.startswith("./") else path
    return f"{HERE}/{rest}" if rest else HERE
