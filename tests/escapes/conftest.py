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


ROOMS = {
    "portable": [],
    "no-refusal": ["--no-refusal"],
    "exact": ["--exact"],
    "exact-no-namespaces": ["--exact", "--no-namespaces"],
}


@pytest.fixture(scope="module", params=ROOMS)
def room(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, listeners: Listeners
) -> Iterator[EscapeRoom]:
    """A server with each engine, the portable one also without its look at a program's text."""
    found = EscapeRoom(tmp_path_factory.mktemp("escape"), listeners, *ROOMS[request.param])
    yield found
    found.server.close()
