"""A project with documents, and the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_guide.store import PROJECT, USER, Store

PYTHON = """\
---
title: Python style
description: How Python is written here.
tags: [python, style]
---
# Python
Lines have at most {{ project.name | length }} letters. Be brief.
"""


@pytest.fixture
def project(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one document of its own; the user has two, one under the same name."""
    project = tmp_path / "shop"
    write(project / ".guide/style/python.md", PYTHON)
    write(home / ".guide/style/python.md", "the user's python")
    write(home / ".guide/git/commits.md", "# How to commit\nSmall, with a reason.")
    for name in ("MCP_TOOL_PREFIX", "MCP_INCLUDE_EXAMPLE_TOOLS", USER):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(PROJECT, str(project))
    return project


@pytest.fixture
def store(project: Path) -> Store:
    """The store of the project."""
    return Store.here()


def write(file: Path, text: str | bytes) -> Path:
    """Write a file and the directories above it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file
