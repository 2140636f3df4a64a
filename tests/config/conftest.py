"""What the tests of the configuration share."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A user without settings, in a directory without a project."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    return Desk(cwd, tmp_path / "home" / ".onetool")
