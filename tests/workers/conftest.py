"""uv with the machine's own cache, and one watched server for the faults that a server must survive."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from workers.door import Door
from workers.watched_workers import WatchedWorkers

OUTSIDE = dict(os.environ)


@pytest.fixture(scope="session", autouse=True)
def uv_cache() -> Iterator[str]:
    """Where uv keeps what it has downloaded; every server of these tests uses it."""
    command = ["uv", "cache", "dir"]
    found = subprocess.run(command, env=OUTSIDE, capture_output=True, text=True, check=True).stdout.strip()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", found)
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, uv_cache: str) -> Iterator[WatchedWorkers]:
    """A server with the limits of the corpora, a pack that misbehaves and one that does not."""
    with WatchedWorkers.started(tmp_path_factory.mktemp("watched")) as watched:
        yield watched


@pytest.fixture
async def door(tmp_path: Path) -> AsyncGenerator[Door]:
    """The door and the pool in this process, for faults that need a hand on both."""
    opened = Door(tmp_path / "state")
    yield opened
    await opened.aclose()
