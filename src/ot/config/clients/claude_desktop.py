"""Claude Desktop: claude_desktop_config.json."""

from __future__ import annotations

from ot.config.clients.found_server import Client, Found, Place, Surroundings
from ot.config.clients.mcp_servers import read_mcp_servers


def places(around: Surroundings) -> tuple[Place, ...]:
    """Return its one file."""
    return (Place(around.application("Claude") / "claude_desktop_config.json", "user"),)


def read(data: bytes, place: Place, around: Surroundings) -> Found:
    """Return what it says."""
    return read_mcp_servers(data, CLIENT.name, place, around)


CLIENT = Client("claude-desktop", "Claude Desktop", places, read)
