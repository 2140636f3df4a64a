"""What the tests of real servers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.command import OneTool


@pytest.fixture
def onetool(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OneTool:
    """The command, in an empty directory, of a user without settings."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    return OneTool(cwd, home, monkeypatch, capsys)
