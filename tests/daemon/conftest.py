"""Users with a shared server: one for the tests of a file, or one for a single test."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from shared_bed import SharedBed, shared_bed


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedBed]:
    """A user for all tests of a file: a shared server takes seconds to start."""
    with shared_bed(tmp_path_factory.mktemp("user")) as user:
        yield user


@pytest.fixture
def new_user(tmp_path: Path) -> Generator[SharedBed]:
    """A user for whom no shared server was ever started."""
    with shared_bed(tmp_path / "user") as user:
        yield user
