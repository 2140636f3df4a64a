"""A server in memory and one in a process, spoken to in both eras of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP

from faults.fault_server import fault_packs
from faults.watched import CONFIG, Place
from faults.wire_eras import ERAS as WIRE_ERAS
from faults.wire_eras import Talk, start_talk
from ot.config.paths import Paths
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace

ERAS = {"modern": "auto", "handshake": "legacy"}


@pytest.fixture
async def app(tmp_path: Path, home: Path) -> AsyncIterator[Workspace]:
    """A whole house that works in an empty directory."""
    packs = fault_packs("faults.fault_packs")
    app = Workspace.alone(Paths.of(tmp_path, home / ".onetool"), packs=packs, engine=PortableEngine())
    yield app
    await app.aclose()


@pytest.fixture
def server(app: Workspace) -> FastMCP:
    """The face of the house."""
    return build_server(OneUser(app), "1.2.3")


@pytest.fixture(params=ERAS)
async def client(request: pytest.FixtureRequest, server: FastMCP) -> AsyncIterator[Client[Any]]:
    """A client of the server, once an era."""
    async with Client(server, mode=ERAS[request.param]) as client:  # pyright: ignore[reportArgumentType] - two of ConnectMode's values
        yield client


@pytest.fixture(scope="module", params=WIRE_ERAS)
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """A conversation with a real server process, once an era."""
    talk = start_talk(Place.make(tmp_path_factory.mktemp("talk"), CONFIG.replace("WARNING", "INFO")), request.param)
    with talk.wire:
        yield talk
