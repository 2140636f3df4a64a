"""What is said of a project, and documents with it filled in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mcp_core import program_function
from mcp_guide import project_facts
from mcp_guide.project_facts import facts_of
from mcp_guide.renderer import render_template
from mcp_guide.tools.tool_document import get


def fill(project: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return project


def test_the_facts_are_name_path_branch_and_languages_by_files(tmp_path: Path) -> None:
    project = fill(
        tmp_path / "shop",
        {
            "a.py": "", "b/c.py": "", "web/x.ts": "", "README": "", ".hidden/x.rs": "", "node_modules/x.js": "",
            ".git/HEAD": "ref: refs/heads/feature/x\n",
        },
    )  # fmt: skip
    assert facts_of(project) == {
        "name": "shop",
        "path": str(project),
        "branch": "feature/x",
        "languages": [{"name": "Python", "files": 2}, {"name": "TypeScript", "files": 1}],
    }


def test_the_branch_of_a_worktree_is_found_and_a_strange_head_is_none(tmp_path: Path) -> None:
    fill(
        tmp_path, {"main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n"}
    )
    assert facts_of(tmp_path / "w")["branch"] == "w"
    fill(tmp_path, {"secret/HEAD": "root:x:0\n", "evil/.git": f"gitdir: {tmp_path}/secret\n", "no/.git": "\0"})
    assert facts_of(tmp_path / "evil")["branch"] == facts_of(tmp_path / "no")["branch"] == ""
    (tmp_path / "pipe/.git").mkdir(parents=True)
    os.mkfifo(tmp_path / "pipe/.git/HEAD")
    assert facts_of(tmp_path / "pipe")["branch"] == ""


def test_counting_ends_in_a_very_large_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, {f"d{number}/{name}.py": "" for number in range(5) for name in "ab"})
    monkeypatch.setattr(project_facts, "MAX_FILES", 6)
    assert facts_of(tmp_path)["languages"] == [{"name": "Python", "files": 2}]


def test_a_document_is_read_with_facts_and_values_filled_in(project: Path) -> None:
    (project / ".guide/style/python.md").write_text("{{ project.name }} {{ values.who }}{% if 0 %}x{% endif %}\n")
    assert program_function(get)(name="python", values={"who": "Ada"})["text"] == "shop Ada\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{{ values.who }}", "has no attribute 'who'"),
        ("run: ${{ secrets.KEY }}", "UndefinedError: 'secrets' is undefined"),
    ],
)
def test_a_template_that_cannot_be_filled_in_is_read_as_it_is_and_says_why(project: Path, text: str, why: str) -> None:
    (project / ".guide/style/python.md").write_text(text)
    found = program_function(get)(name="python")
    assert found["text"] == text
    assert why in found["unrendered"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{{ ().__class__.__bases__ }}", "SecurityError"),
        ("{{ project.x }}", "UndefinedError"),
        ("{% for %}", "TemplateSyntaxError"),
        ("{% include '/etc/passwd' %}", "TypeError"),
        ("{{ 'x' * 2000000 }}", "more than 1 MiB"),
        ("{{ 'x' * 10000000000 }}", "too much memory"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "too much time or memory"),
    ],
    ids=range(7),
)
def test_a_template_reaches_nothing_and_takes_little(text: str, words: str) -> None:
    values: dict[str, Any] = {"project": {}, "values": {}}
    rendered, error = render_template(text, values)
    assert rendered == ""
    assert words in error
