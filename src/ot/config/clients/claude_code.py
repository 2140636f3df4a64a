"""Claude Code: ~/.claude.json, .mcp.json, and the permissions in its settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, get_args

from ot.config.clients.found_server import Client, Found, FoundRule, Place, Rule, Surroundings
from ot.config.clients.json_with_comments import read_json, table, texts
from ot.config.clients.mcp_servers import approvals_of, servers_of

OFF = ("disabledMcpServers", "disabledMcpjsonServers")
PERMISSION = re.compile(r"mcp__(.+?)(?:__(.+))?")


def places(around: Surroundings) -> tuple[Place, ...]:
    """Return its files: a setting for this project alone before the project's, and that before the user's."""
    settings = around.cwd / ".claude"
    return (
        Place(around.home / ".claude.json", "user"),
        Place(around.cwd / ".mcp.json", "project"),
        Place(around.home / ".claude" / "settings.json", "user"),
        Place(settings / "settings.json", "project"),
        Place(settings / "settings.local.json", "project"),
    )


def read(data: bytes, place: Place, around: Surroundings) -> Found:
    """Return what one of its files says."""
    content = read_json(data)
    local = table(table(content.get("projects")).get(str(around.cwd)))
    off = frozenset(name for part in (content, local) for key in OFF for name in texts(part.get(key)))
    if place.file.name.startswith("settings"):
        return Found(rules=tuple(_rules(content, place)), off=off)
    own = Place(place.file, "project")
    servers = [
        *servers_of(local.get("mcpServers"), CLIENT.name, own, around),
        *servers_of(content.get("mcpServers"), CLIENT.name, place, around),
    ]
    given = {**table(content.get("mcpServers")), **table(local.get("mcpServers"))}
    rules = approvals_of(given, place) if place.scope == "user" else ()
    return Found(tuple(servers), tuple(rules), off)


def _rules(content: dict[str, Any], place: Place) -> Iterator[FoundRule]:
    permissions = table(content.get("permissions"))
    for rule in get_args(Rule.__value__):
        # What a repository allows itself is no word of its user's; what it denies is.
        if rule == "allow" and place.file.name == "settings.json" and place.scope == "project":
            continue
        for text in texts(permissions.get(rule)):
            if found := PERMISSION.fullmatch(text):
                yield FoundRule(rule, found[1], found[2] or "*", place)


CLIENT = Client("claude-code", "Claude Code", places, read)
