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
    # The weakest jail that there is: nothing but what needs no package, for a user whose files are the server's.
    "exact-as-user-no-namespaces": ["--exact", "--no-namespaces", "--as-user"],
}
SOAKED = {
    "exact": ["--exact"],
    "exact-no-namespaces": ["--exact", "--no-namespaces"],
    "exact-as-user": ["--exact", "--as-user"],
    "no-refusal": ["--no-refusal"],
}
"""Stronger jails, which hold what the weakest holds, and the portable engine without its look at a program's text."""


@pytest.fixture(scope="module", params=[*ROOMS, *(pytest.param(name, marks=pytest.mark.soak) for name in SOAKED)])
def room(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, listeners: Listeners
) -> Iterator[EscapeRoom]:
    """A server with each engine, and in each way of running it."""
    found = EscapeRoom(tmp_path_factory.mktemp("escape"), listeners, *(ROOMS | SOAKED)[request.param])
    yield found
    found.server.close()
