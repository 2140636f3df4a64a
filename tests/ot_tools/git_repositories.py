"""Real repositories for the tests of the pack ``git``."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ot.execution.tool_context import ToolContext
from ot.files.path_guard import PathGuard

WHO = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


def run_git(directory: Path, *args: str, when: str = "2026-01-02T03:04:05+00:00", who: str = "Ada") -> str:
    """Run git itself in *directory*, as one who has no settings."""
    names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
             for key, value in (("NAME", who), ("EMAIL", f"{who.lower()}@example.org"), ("DATE", when))}  # fmt: skip
    environ = {**os.environ, **WHO, **names}
    return subprocess.run(["git", *args], cwd=directory, env=environ, check=True, capture_output=True, text=True).stdout


def make_repository(directory: Path) -> Path:
    """Make a repository with three commits of two people."""
    for name, data in _made().items():
        if data is None:
            (directory / name).mkdir(parents=True)
        else:
            (directory / name).write_bytes(data)
    return directory


@cache
def _made() -> dict[str, bytes | None]:
    """Return the files of such a repository, which is made by git only once; None stands for a directory."""
    with TemporaryDirectory() as made:
        directory = Path(made)
        (directory / "src").mkdir()
        run_git(directory, "init", "--quiet", "--initial-branch=main", "--template=")
        (directory / ".git" / "info").mkdir()
        (directory / ".git" / "info" / "exclude").write_text("")
        run_git(directory, "config", "user.name", "Ada")
        run_git(directory, "config", "user.email", "ada@example.org")
        (directory / "notes.txt").write_text("buy milk\ncall Ada\nsleep\n")
        (directory / "src" / "app.py").write_text("def main() -> None:\n    ...\n")
        run_git(directory, "add", ".")
        run_git(directory, "commit", "--quiet", "--message", "Begin\n\nWith a body.")
        (directory / "src" / "app.py").write_text("def main() -> None:\n    print('hello')\n")
        run_git(directory, "commit", "--quiet", "-a", "-m", "Say hello", when="2026-02-03T12:00:00+01:00", who="Bob")
        (directory / "src" / "app.py").rename(directory / "src" / "hello.py")
        run_git(directory, "add", "--all")
        run_git(directory, "commit", "--quiet", "-m", "Rename the app", when="2026-02-10T08:00:00+00:00")
        found = (directory, *sorted(directory.rglob("*")))
        return {str(path.relative_to(directory)): None if path.is_dir() else path.read_bytes() for path in found}


def context(*roots: Path, **settings: Any) -> ToolContext:
    """Return what a tool sees that may use *roots*."""
    return ToolContext(guard=PathGuard(roots), cwd=roots[0], settings=settings)
