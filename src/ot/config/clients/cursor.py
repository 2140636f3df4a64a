"""Cursor: mcp.json, for all projects and for one."""

from __future__ import annotations

from ot.config.clients.found_server import Client, Found, Place, Surroundings
from ot.config.clients.mcp_servers import read_mcp_servers


def places(around: Surroundings) -> tuple[Place, ...]:
    """Return its files."""
    return (
        Place(around.home / ".cursor" / "mcp.json", "user"),
        around.in_project(".cursor", "mcp.json"),
    )


def read(data: bytes, place: Place, around: Surroundings) -> Found:
    """Return what one of them says."""
    return read_mcp_servers(data, CLIENT.name, place, around)


CLIENT = Client("cursor", "Cursor", places, read)
