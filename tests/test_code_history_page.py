"""The page about code and its history: its programs, in a real repository."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from docs_blocks import DOCS, blocks_of
from ot.workspace import Workspace
from run_app import running_app, value_of

pytestmark = pytest.mark.anyio

PAGE = DOCS / "how-to/work-on-code-history.md"


def commit(directory: Path, message: str, days: int, author: str, **files: str) -> None:
    """Commit *files* (``__`` stands for a slash, ``_`` for a dot) as *author*, some days ago."""
    for name, text in files.items():
        path = directory / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    when = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    names = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
             for key, value in (("NAME", author), ("EMAIL", f"{author}@example.org"), ("DATE", when))}  # fmt: skip
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, **names}
    for args in (["add", "."], ["commit", "--quiet", "-m", message]):
        subprocess.run(["git", *args], cwd=directory, env=environ, check=True)


def day(ago: int) -> str:
    return (datetime.now(UTC) - timedelta(days=ago)).date().isoformat()


def make_history(directory: Path) -> None:
    for args in (
        ["init", "--quiet", "--initial-branch=main"],
        ["config", "user.name", "Ada"],
        ["config", "user.email", "a@x"],
    ):
        subprocess.run(["git", *args], cwd=directory, check=True)
    commit(directory, "Begin", 90, "Ada", src__app_py="def main():\n    start()\n", _gitignore="build/\n")
    commit(directory, "Run", 9, "Bob", src__app_py="def main():\n    run()\n", docs__use_md="max_retries: 3\n")
    commit(directory, "Configure", 5, "Ada", src__settings_py="max_retries = 3\n", docs__more_md="# More\n")
    (directory / "build").mkdir()
    (directory / "build" / "settings.py").write_text("max_retries = 3\n")


async def played(app: Workspace, source: str) -> Any:
    value = value_of(await app.run(source))
    try:
        return json.loads(value)
    except ValueError:
        return value


async def test_the_programs_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    async with running_app(tmp_path, config={"policy": {"allow": ["git.*", "file.*"]}}) as app:
        directory = tmp_path / "work"
        make_history(directory)
        programs = [block.text for block in blocks_of(PAGE) if block.language == "python"]
        by_area, by_author, dry, renamed, patched, committed, undone = [
            await played(app, program) for program in programs
        ]
    assert by_area == [["docs", 2], ["src", 2]]
    assert by_author == [
        {"author": "Ada", "lines": 1, "last": day(90)},
        {"author": "Bob", "lines": 1, "last": day(9)},
    ]
    assert dry.count("+++ b/") == 2
    assert "-max_retries = 3\n+retry_limit = 3\n" in dry
    assert renamed == ["docs/use.md: +1 -1", "src/settings.py: +1 -1"]
    assert [(done["path"], done["created"]) for done in patched] == [("src/app.py", False), ("docs/check.md", True)]
    assert [change["path"] for change in committed] == ["docs/check.md", "src/app.py", "src/settings.py"]
    assert undone == "def main():\n    run()\n"
    assert (directory / "build" / "settings.py").read_text() == "max_retries = 3\n"
