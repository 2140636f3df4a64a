"""A user whose shared server the relays of a file's tests reach."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from shared_bed import SharedBed, shared_bed


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedBed]:
    """A user whose shared server runs already."""
    with shared_bed(tmp_path_factory.mktemp("user")) as user:
        with user.client() as client:
            client.run("1")
        yield user
