"""What tests of the shared server use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from shared_bed import SharedBed, asked_bed


@pytest.fixture
def house(tmp_path: Path) -> Iterator[SharedBed]:
    """The home of a user without a shared server, so far."""
    with asked_bed(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def busy_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedBed]:
    """The home of a user with a shared server that one client uses."""
    with asked_bed(tmp_path_factory.mktemp("busy")) as made, made.client() as client:
        client.run("1 + 1")
        yield made
