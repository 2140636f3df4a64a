"""What the escape tests share: listeners, and one server for each way of running it."""

from __future__ import annotations

import os
import time
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
    "exact": ["--exact"],
    "portable": [],
    # The weakest jail that there is: nothing but what needs no package, for a user whose files are the server's.
    "exact-as-user-no-namespaces": ["--exact", "--no-namespaces", "--as-user"],
    "exact-no-namespaces": ["--exact", "--no-namespaces"],
    "exact-as-user": ["--exact", "--as-user"],
    # The portable engine without its look at a program's text.
    "no-refusal": ["--no-refusal"],
}
FIRST, *OTHERS = ROOMS
DAY = int(time.time() // 86_400)
TODAY = os.environ.get("ESCAPES_ROOM", OTHERS[DAY % len(OTHERS)])
"""CI tries the strongest jail every day, and of the other rooms one a day; `just soak` tries them all."""


@pytest.fixture(
    scope="module",
    params=[name if name in (FIRST, TODAY) else pytest.param(name, marks=pytest.mark.soak) for name in ROOMS],
)
def room(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, listeners: Listeners
) -> Iterator[EscapeRoom]:
    """A server with each engine, and in each way of running it."""
    found = EscapeRoom(tmp_path_factory.mktemp("escape"), listeners, *ROOMS[request.param])
    yield found
    found.server.close()
