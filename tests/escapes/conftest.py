"""What the escape tests share: listeners, and one server for each way of running it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from escapes.escape_room import ROOMS, EscapeRoom, marks_of
from escapes.listeners import Listeners


@pytest.fixture(scope="session")
def listeners() -> Iterator[Listeners]:
    """Sockets of this machine that no program may reach."""
    with Listeners() as found:
        yield found


@pytest.fixture(scope="module", params=[pytest.param(name, marks=marks_of(name)) for name in ROOMS])
def room(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, listeners: Listeners
) -> Iterator[EscapeRoom]:
    """A server with each engine, and in each way of running it."""
    found = EscapeRoom(tmp_path_factory.mktemp("escape"), listeners, *ROOMS[request.param])
    yield found
    found.server.close()
