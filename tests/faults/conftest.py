"""One watched server for all faults of a file; a fault that a server does not survive fails its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.watched import SHIPPED, Watched


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server with the limits of the corpora."""
    with Watched.started(tmp_path_factory.mktemp("watched")) as watched:
        yield watched


@pytest.fixture
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server with the limits that it is shipped with, for one test."""
    with Watched.started(tmp_path_factory.mktemp("shipped"), SHIPPED, crowd=70) as watched:
        yield watched
