"""Real servers can be installed, and tell what they offer."""

from __future__ import annotations

import pytest

from real_servers.catalogues import KEPT, real_catalogues
from real_servers.server_table import REAL_SERVERS

# The first time on a machine, all of them are installed.
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(400)]


async def test_real_servers_list_hundreds_of_tools() -> None:
    catalogues = await real_catalogues()
    assert list(catalogues) == list(REAL_SERVERS)
    assert len(catalogues) >= 8
    assert sum(map(len, catalogues.values())) >= 200
    for tools in catalogues.values():
        assert all(tool["name"] and isinstance(tool["inputSchema"], dict) for tool in tools)


async def test_a_server_is_asked_once() -> None:
    first = await real_catalogues(["time"])
    assert first["time"] is KEPT["time"]
    assert (await real_catalogues(["time"]))["time"] is first["time"]
