"""One watched server for all inputs of a file; an input that a server does not survive fails its test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.watched import Watched


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server with the limits of the corpora."""
    with Watched.started(tmp_path_factory.mktemp("watched")) as watched:
        yield watched
