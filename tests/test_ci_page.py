"""The page about CI: its job's steps, played in an empty home, do what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from console_blocks import typed_commands
from docs_blocks import ROOT
from test_library_page import BLOCK

PAGE = (ROOT / "docs/how-to/run-in-ci.md").read_text(encoding="utf-8")
FILES = {block["file"]: block["text"] for block in BLOCK.finditer(PAGE)}
WORKFLOW = ".github/workflows/todos.yml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with the page's program."""
    program = "programs/todos.py"
    for name, text in ((program, FILES[program]), ("src/main.py", "# TODO(ada): tidy up\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def typed(command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run *command* as a job's shell does."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "GITHUB_TOKEN": "a-token-of-the-job"}
    shell = ["bash", "-eo", "pipefail", "-c", command]
    return subprocess.run(shell, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60)


def steps() -> tuple[str, str]:
    """Return what the job runs once OneTool is installed: the program, and what shows its words."""
    (job,) = yaml.safe_load(FILES[WORKFLOW])["jobs"].values()
    named: dict[str, Any] = {step["name"]: step for step in job["steps"] if "name" in step}
    assert list(named) == ["install", "run the program", "show what it said"]
    assert named["show what it said"]["if"] == "always()"
    return named["run the program"]["run"], named["show what it said"]["run"]


def test_the_job_passes_where_the_program_does(repository: Path) -> None:
    run, show = steps()
    assert typed(run, repository).returncode == 0
    assert typed(show, repository).stdout == "every TODO has an owner\n"


def test_the_job_fails_with_the_program_and_says_why(repository: Path) -> None:
    (repository / "src" / "late.py").write_text("x = 1  # TODO: name it\n")
    run, show = steps()
    assert typed(run, repository).returncode == 1
    said = typed(show, repository).stdout
    assert "src/late.py:1: x = 1  # TODO: name it" in said
    assert "ValueError: 1 TODO without an owner" in said


def test_what_a_job_allows_and_adds_is_the_user_s(repository: Path, home: Path) -> None:
    for command in typed_commands(PAGE):
        done = typed(command.command, repository)
        assert command.is_kept_by(done.stdout + done.stderr), done
    written: dict[str, Any] = yaml.safe_load((home / ".onetool" / "onetool.yaml").read_text())
    assert written["policy"]["allow"] == ["github.create_issue"]
    assert written["servers"]["github"]["env"] == {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}
