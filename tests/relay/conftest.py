"""A user whose shared server the relays of a file's tests reach."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from daemon.shared_user import SharedUser, shared_user


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Generator[SharedUser]:
    """A user whose shared server runs already."""
    with shared_user(tmp_path_factory.mktemp("user")) as user:
        with user.client() as client:
            client.run("1")
        yield user
