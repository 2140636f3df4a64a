"""Codex: the [mcp_servers] of config.toml, where nothing is expanded and variables have keys of their own."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from ot.config.clients.found_server import Client, Found, FoundServer, Place, Surroundings
from ot.config.clients.json_with_comments import table, texts
from ot.config.clients.mcp_servers import with_tools
from ot.config.clients.server_entry import KNOWN, entry_of

OWN = frozenset(
    {
        *("env_vars", "bearer_token_env_var", "http_headers", "env_http_headers", "enabled_tools", "disabled_tools"),
        *("startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "required", "supports_parallel_tool_calls"),
    }
)


def places(around: Surroundings) -> tuple[Place, ...]:
    """Return its files."""
    return (
        Place(around.home / ".codex" / "config.toml", "user"),
        around.in_project(".codex", "config.toml"),
    )


def read(data: bytes, place: Place, around: Surroundings) -> Found:
    """Return what one of them says."""
    servers = table(tomllib.loads(data.decode("utf-8-sig")).get("mcp_servers"))
    return Found(tuple(_server(name, table(entry), place, around) for name, entry in servers.items()))


def _server(name: str, entry: dict[str, Any], place: Place, around: Surroundings) -> FoundServer:
    env = {**dict(_variables(entry.get("env_vars"))), **table(entry.get("env"))}
    given = {**entry, "env": env, "headers": dict(_headers(entry))}
    found = entry_of(name, given, CLIENT.name, place, around, known=KNOWN | OWN)
    tools = [*texts(entry.get("enabled_tools")), *(f"!{tool}" for tool in texts(entry.get("disabled_tools")))]
    return with_tools(replace(found, entry={**found.entry, **dict(_seconds(entry))} if found.entry else {}), tools)


def _variables(given: Any) -> Iterator[tuple[str, str]]:
    """Yield the variables that are passed on by name, or by an object with a name."""
    for item in cast("list[Any]", given) if isinstance(given, list) else []:
        name = item if isinstance(item, str) else table(item).get("name")
        if isinstance(name, str):
            yield name, f"${{{name}}}"


def _headers(entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in table(entry.get("http_headers")).items():
        yield name, str(value)
    for name, variable in table(entry.get("env_http_headers")).items():
        yield name, f"${{{variable}}}"
    if token := entry.get("bearer_token_env_var"):
        yield "Authorization", f"Bearer ${{{token}}}"


def _seconds(entry: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    start, start_ms, call = (
        entry.get(key) for key in ("startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec")
    )
    if isinstance(start_ms, int | float) and start is None:
        start = start_ms / 1000
    for key, value in (("start_seconds", start), ("timeout", call)):
        if isinstance(value, int | float) and value > 0:
            yield key, value


CLIENT = Client("codex", "Codex", places, read)
