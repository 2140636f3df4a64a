"""VS Code: mcp.json with its inputs, and the older place in settings.json."""

from __future__ import annotations

from typing import Any

from ot.config.clients.found_server import Client, Found, Place, Surroundings
from ot.config.clients.json_with_comments import read_json, table
from ot.config.clients.mcp_servers import servers_of


def places(around: Surroundings) -> tuple[Place, ...]:
    """Return its files."""
    user = around.application("Code") / "User"
    return (
        Place(user / "mcp.json", "user"),
        Place(user / "settings.json", "user"),
        around.in_project(".vscode", "mcp.json"),
    )


def read(data: bytes, place: Place, around: Surroundings) -> Found:
    """Return what one of them says."""
    content = read_json(data)
    servers = _servers(content, in_settings=place.file.name == "settings.json")
    problems: tuple[str, ...] = ()
    if "mcpServers" in content:
        problems = (f"{place.file}: VS Code itself ignores 'mcpServers', its key is 'servers'; it was left out",)
    return Found(tuple(servers_of(servers, CLIENT.name, place, around)), problems=problems)


def _servers(content: dict[str, Any], *, in_settings: bool) -> Any:
    return table(content.get("mcp")).get("servers") if in_settings else content.get("servers")


CLIENT = Client("vscode", "VS Code", places, read)
