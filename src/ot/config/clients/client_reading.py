"""What the files of clients say: their servers and their rules, read from either format."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

from ot.config.clients.known_clients import Client
from ot.config.clients.server_entry import (
    APPROVALS,
    KNOWN,
    ClientFile,
    FoundServer,
    Surroundings,
    entry_of,
    table,
    texts,
)
from ot.config.models import PolicyRule

# Nothing in it is tried a second way: a repository's file could make that take for ever.
GAP = r"(?>\s++|//[^\n]*+|/\*(?>.*?(?:\*/|\Z)))*+"
TOKEN = re.compile(rf'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*+|/\*(?>.*?(?:\*/|\Z))|,(?={GAP}[}}\]])', re.DOTALL)
PERMISSION = re.compile(r"mcp__(.+?)(?:__(.+))?")


@dataclass(frozen=True, slots=True)
class FoundRule:
    """A tool, or all of a server's tools (``*``), that the user allowed, denied or wants to be asked about."""

    rule: PolicyRule
    server: str
    tool: str
    place: ClientFile


@dataclass(frozen=True, slots=True)
class FoundInFile:
    """Everything that one file says."""

    servers: tuple[FoundServer, ...] = ()
    rules: tuple[FoundRule, ...] = ()
    off: frozenset[str] = frozenset()
    """Servers that are switched off, in whichever file of the client they stand."""
    problems: tuple[str, ...] = ()
    repository: bool = False


def read_json(data: bytes) -> dict[str, Any]:
    """Return the object in *data*, JSON as editors write it: with comments, and commas before a closing bracket.

    Raises:
        ValueError: It holds none; the message says where it stops making sense.
    """
    text = TOKEN.sub(
        # Lines stay lines, so that an error names the right one.
        lambda found: found.group() if found.group()[0] == '"' else "\n" * found.group().count("\n"),
        data.decode("utf-8-sig"),
    )
    found: Any = json.loads(text) if text.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("it does not contain a JSON object")
    return cast("dict[str, Any]", found)


def read_file(client: Client, data: bytes, place: ClientFile, around: Surroundings) -> FoundInFile:
    """Parse *data*, the file of *client* at *place*; raise ValueError if it cannot be understood."""
    toml = place.file.suffix == ".toml"
    content = tomllib.loads(data.decode("utf-8-sig")) if toml else read_json(data)
    local = table(_at(content, client.projects).get(str(around.cwd))) if client.projects else {}
    off = frozenset(name for part in (content, local) for key in client.off for name in _read_texts(part, key))
    if not place.key:
        return replace(_permissions(content, place), off=off)
    if not isinstance(value_at(content, place.key), dict | None):
        raise ValueError(f"'{place.key}' is not an object")
    own, general = _at(local, place.key), _at(content, place.key)
    if client.allowed and isinstance(value_at(content, client.allowed), list):
        off |= general.keys() - set(_read_texts(content, client.allowed))
    servers = [
        *(read_server(client, name, entry, place, around) for name, entry in general.items()),
        *(read_server(client, name, entry, private_place(place, around), around) for name, entry in own.items()),
    ]
    # A repository must not speak for its user.
    rules = _approvals({**general, **own}, place) if client.approvals and place.scope == "user" else ()
    return FoundInFile(tuple(servers), tuple(rules), off, tuple(_find_ignored(client, content, place)))


def private_place(place: ClientFile, around: Surroundings) -> ClientFile:
    """Return the part of the user's file at *place* that is about the working directory alone."""
    return replace(place, only_in=str(around.cwd))


def _at(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    found: Any = content
    for step in key.split("."):
        found = table(found).get(step)
    return table(found)


def _read_texts(content: Mapping[str, Any], key: str) -> list[str]:
    return texts(value_at(content, key))


def value_at(content: Mapping[str, Any], key: str) -> Any:
    """Return the value at the dotted path *key*."""
    above, _, last = key.rpartition(".")
    return (_at(content, above) if above else content).get(last)


def read_server(client: Client, name: str, given: Any, place: ClientFile, around: Surroundings) -> FoundServer:
    """Return OneTool's settings for the server that *client* keeps as *given*."""
    entry = client.adapted(table(given))
    if client.no_command and not entry.get("command") and not entry.get("url"):
        return FoundServer(name, place, skipped=client.no_command, original=name)
    known = KNOWN.union(client.wanted, client.unwanted, client.other_keys, (key for key, _, _ in client.seconds))
    found = entry_of(name, entry, place, around, known)
    more = dict(_seconds(client, entry))
    tools = [tool for key in client.wanted for tool in texts(entry.get(key))]
    tools += [f"!{tool}" for key in client.unwanted for tool in texts(entry.get(key))]
    more |= {"tools": tools} if tools else {}
    return replace(found, entry={**found.entry, **more}) if found.entry else found


def _seconds(client: Client, entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for key, name, unit in client.seconds:
        value = entry.get(key) if name not in seen else None
        if value is not None:
            seen.add(name)
        if isinstance(value, int | float) and value > 0:
            yield name, value / unit if unit > 1 else value


def _approvals(servers: Mapping[str, Any], place: ClientFile) -> Iterator[FoundRule]:
    for name, entry in servers.items():
        for key in APPROVALS:
            for tool in filter(None, texts(table(entry).get(key))):
                yield FoundRule("allow", name, tool, place)


def _find_ignored(client: Client, content: Mapping[str, Any], place: ClientFile) -> Iterator[str]:
    if client.ignored_key and client.ignored_key in content:
        key = place.key.rpartition(".")[2]
        text = f"{client.title} itself ignores '{client.ignored_key}', its key is '{key}'"
        yield f"{place.file}: {text}; it was left out"


def _permissions(content: Mapping[str, Any], place: ClientFile) -> FoundInFile:
    """Return the permissions of settings; a repository's, even in settings.local.json, can only deny."""
    given = table(content.get("permissions"))
    named = [
        (rule, PERMISSION.fullmatch(text)) for rule in get_args(PolicyRule.__value__) for text in texts(given.get(rule))
    ]
    rules = [FoundRule(rule, found[1], found[2] or "*", place) for rule, found in named if found]
    left = [rule for rule in rules if place.repository and rule.rule != "deny"]
    tools = ", ".join(f"{rule.rule} {rule.server}.{rule.tool}" for rule in left[:10])
    problem = f"{place.file}: a repository does not say what you allow; left out: {tools}"
    return FoundInFile(rules=tuple(rule for rule in rules if rule not in left), problems=(problem,) if left else ())
