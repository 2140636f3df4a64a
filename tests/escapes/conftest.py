"""What the escape tests share: listeners, and one server for each way of running it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from escapes.escape_room import EscapeRoom
from escapes.listeners import Listeners


@pytest.fixture(scope="session")
def listeners() -> Iterator[Listeners]:
    """Sockets of this machine that no program may reach."""
    with Listeners() as found:
        yield found


@pytest.fixture(scope="module", params=["as-shipped", "no-refusal"])
def room(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, listeners: Listeners
) -> Iterator[EscapeRoom]:
    """A server as shipped, and one that lets every program through to the sandbox."""
    options = [] if request.param == "as-shipped" else [f"--{request.param}"]
    found = EscapeRoom(tmp_path_factory.mktemp("escape"), listeners, *options)
    yield found
    found.server.close()
