"""The form that most clients share: an object of servers by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ot.config.clients.found_server import Found, FoundRule, FoundServer, Place, Surroundings
from ot.config.clients.json_with_comments import read_json, table, texts
from ot.config.clients.server_entry import APPROVALS, KNOWN, entry_of

FILTERS = frozenset({"disabledTools", "enabledTools", "includeTools", "excludeTools"})


def servers_of(given: Any, client: str, place: Place, around: Surroundings) -> Iterator[FoundServer]:
    """Yield every server of the object *given*."""
    for name, entry in table(given).items():
        found = entry_of(name, table(entry), client, place, around, known=KNOWN | FILTERS)
        yield with_tools(found, _filter(table(entry)))


def approvals_of(given: Any, place: Place) -> Iterator[FoundRule]:
    """Yield the tools that the entries of *given* say need no question."""
    for name, entry in table(given).items():
        for key in APPROVALS:
            for tool in filter(None, texts(table(entry).get(key))):
                yield FoundRule("allow", name, tool, place)


def read_mcp_servers(data: bytes, client: str, place: Place, around: Surroundings) -> Found:
    """Return what a file of the common form says: ``{"mcpServers": {...}}``."""
    servers = read_json(data).get("mcpServers")
    # What a repository says of itself is no word of its user's.
    rules = approvals_of(servers, place) if place.scope == "user" else ()
    return Found(tuple(servers_of(servers, client, place, around)), tuple(rules))


def with_tools(found: FoundServer, tools: list[str]) -> FoundServer:
    """Return *found* offering only *tools*, which are patterns, one with ! left out."""
    return replace(found, entry={**found.entry, "tools": tools}) if tools and found.entry else found


def _filter(entry: Mapping[str, Any]) -> list[str]:
    wanted = [*texts(entry.get("enabledTools")), *texts(entry.get("includeTools"))]
    unwanted = [*texts(entry.get("disabledTools")), *texts(entry.get("excludeTools"))]
    return [*wanted, *(f"!{tool}" for tool in unwanted)]
