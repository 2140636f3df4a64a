"""Zed: the context_servers of its settings.json."""

from __future__ import annotations

from typing import Any

from ot.config.clients.found_server import Client, Found, FoundServer, Place, Surroundings
from ot.config.clients.json_with_comments import read_json, table
from ot.config.clients.server_entry import KNOWN, entry_of


def places(around: Surroundings) -> tuple[Place, ...]:
    """Return its files; on macOS, too, they are below ~/.config."""
    user = around.application("Zed") if around.platform == "win32" else around.home / ".config" / "zed"
    return (Place(user / "settings.json", "user"), around.in_project(".zed", "settings.json"))


def read(data: bytes, place: Place, around: Surroundings) -> Found:
    """Return what one of them says."""
    servers = table(read_json(data).get("context_servers"))
    return Found(tuple(_server(name, table(entry), place, around) for name, entry in servers.items()))


def _server(name: str, entry: dict[str, Any], place: Place, around: Surroundings) -> FoundServer:
    # Older settings keep the program as an object of its own.
    if command := table(entry.get("command")):
        entry = {**entry, "command": command.get("path"), "args": command.get("args"), "env": command.get("env")}
    if not entry.get("command") and not entry.get("url"):
        why = "an extension of Zed brings it: only Zed knows its command"
        return FoundServer(name, CLIENT.name, place, skipped=why)
    return entry_of(name, entry, CLIENT.name, place, around, known=KNOWN | {"settings"})


CLIENT = Client("zed", "Zed", places, read)
