"""Users with a shared server: one for the tests of a file, or one for a single test."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from daemon.shared_user import SharedUser, shared_user


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedUser]:
    """A user for all tests of a file: a shared server takes seconds to start."""
    with shared_user(tmp_path_factory.mktemp("user")) as user:
        yield user


@pytest.fixture
def new_user(tmp_path: Path) -> Generator[SharedUser]:
    """A user for whom no shared server was ever started."""
    with shared_user(tmp_path / "user") as user:
        yield user
