"""Claude Code: ~/.claude.json, .mcp.json, and the permissions in its settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from ot.config.clients.found_server import Client, Found, FoundRule, Place, Rule, Surroundings
from ot.config.clients.json_with_comments import read_json, table, texts
from ot.config.clients.mcp_servers import approvals_of, servers_of

OFF = ("disabledMcpServers", "disabledMcpjsonServers")
PERMISSION = re.compile(r"mcp__(.+?)(?:__(.+))?")


def places(around: Surroundings) -> tuple[Place, ...]:
    """Return its files: a setting for this project alone before the project's, and that before the user's."""
    return (
        Place(around.home / ".claude.json", "user"),
        around.in_project(".mcp.json"),
        Place(around.home / ".claude" / "settings.json", "user"),
        around.in_project(".claude", "settings.json"),
        around.in_project(".claude", "settings.local.json"),
    )


def read(data: bytes, place: Place, around: Surroundings) -> Found:
    """Return what one of its files says."""
    content = read_json(data)
    local = table(table(content.get("projects")).get(str(around.cwd)))
    off = frozenset(name for part in (content, local) for key in OFF for name in texts(part.get(key)))
    if place.file.name.startswith("settings"):
        rules = tuple(_rules(content, place))
        return Found(rules=tuple(rule for rule in rules if _may_say(rule)), off=off, problems=tuple(_untaken(rules)))
    own = Place(place.file, "project", place.repository)
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
        for text in texts(permissions.get(rule)):
            if found := PERMISSION.fullmatch(text):
                yield FoundRule(rule, found[1], found[2] or "*", place)


def _may_say(rule: FoundRule) -> bool:
    """Whether a file may say that: one of a repository can be committed, also settings.local.json, and only denies."""
    return rule.rule == "deny" or not rule.place.repository


def _untaken(rules: Sequence[FoundRule]) -> Iterator[str]:
    if left := [rule for rule in rules if not _may_say(rule)]:
        tools = ", ".join(f"{rule.rule} {rule.server}.{rule.tool}" for rule in left[:10])
        yield f"{left[0].place.file}: a repository does not say what you allow; left out: {tools}"


CLIENT = Client("claude-code", "Claude Code", places, read)
