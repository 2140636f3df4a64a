"""The clients whose servers can be taken over: one row each, and a reader for either format of their files."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

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


@dataclass(frozen=True, slots=True)
class Client:
    """A client; the defaults are the form that most of them share."""

    name: str
    title: str
    files: Mapping[str, str]
    """The key under which each file lists its servers, or nothing for one that holds permissions.

    ``~`` is the home directory, ``.`` the project, ``APP`` where applications keep settings, ``CONFIG`` ~/.config.
    """
    wanted: tuple[str, ...] = ("enabledTools", "includeTools")
    unwanted: tuple[str, ...] = ("disabledTools", "excludeTools")
    approvals: bool = True
    """Whether a server's entry names tools that need no question."""
    seconds: Sequence[tuple[str, str, int]] = ()
    """Keys that are times, their names here, and how many of their unit are a second; the first given counts."""
    other_keys: tuple[str, ...] = ()
    """What else an entry may hold without a note that it was left out."""
    adapted: Callable[[dict[str, Any]], dict[str, Any]] = dict[str, Any]
    """Makes an entry one of the common form."""
    projects: str = ""
    """The key under which the user's file holds the settings of single directories."""
    off: tuple[str, ...] = ()
    """The lists of servers that are switched off."""
    ignored_key: str = ""
    """Another client's key, which this one ignores itself."""
    no_command: str = ""
    """Why a server without a command or an address cannot be taken."""

    def places(self, around: Surroundings) -> tuple[ClientFile, ...]:
        """Return where its files are, whether or not they exist."""
        return tuple(self._place(path, key, around) for path, key in self.files.items())

    def _place(self, path: str, key: str, around: Surroundings) -> ClientFile:
        base, _, rest = path.partition("/")
        if base == ".":
            # In the home directory a project's files are the user's own.
            return ClientFile(self.name, around.cwd / rest, "project", around.cwd != around.home, key)
        home = around.home
        applications = {
            "darwin": home / "Library" / "Application Support",
            "win32": Path(around.environ.get("APPDATA") or home / "AppData" / "Roaming"),
        }.get(around.platform, Path(around.environ.get("XDG_CONFIG_HOME") or home / ".config"))
        config = applications if around.platform == "win32" else home / ".config"
        return ClientFile(self.name, {"~": home, "APP": applications, "CONFIG": config}[base] / rest, "user", key=key)


# ---------------------------------------------------------------- entries that need more than a row


def _from_codex(entry: dict[str, Any]) -> dict[str, Any]:
    """Return *entry* with the variables, for which Codex has keys of their own, as references."""
    passed = cast("list[Any]", entry.get("env_vars")) if isinstance(entry.get("env_vars"), list) else []
    names = [item if isinstance(item, str) else table(item).get("name") for item in passed]
    env = {name: f"${{{name}}}" for name in names if isinstance(name, str)} | table(entry.get("env"))
    headers = {name: str(value) for name, value in table(entry.get("http_headers")).items()}
    headers |= {name: f"${{{variable}}}" for name, variable in table(entry.get("env_http_headers")).items()}
    if token := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{token}}}"
    return {**entry, "env": env, "headers": headers}


def _from_zed(entry: dict[str, Any]) -> dict[str, Any]:
    """Return *entry* with its program as text: older settings keep it as an object of its own."""
    command = table(entry.get("command"))
    more = {"command": command.get("path"), "args": command.get("args"), "env": command.get("env")}
    return {**entry, **more} if command else entry


# ---------------------------------------------------------------- the table

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            {
                "~/.claude.json": "mcpServers",
                "./.mcp.json": "mcpServers",
                "~/.claude/settings.json": "",
                "./.claude/settings.json": "",
                "./.claude/settings.local.json": "",
            },
            projects="projects",
            off=("disabledMcpServers", "disabledMcpjsonServers"),
        ),
        Client("claude-desktop", "Claude Desktop", {"APP/Claude/claude_desktop_config.json": "mcpServers"}),
        Client("cursor", "Cursor", {"~/.cursor/mcp.json": "mcpServers", "./.cursor/mcp.json": "mcpServers"}),
        Client(
            "vscode",
            "VS Code",
            {
                "APP/Code/User/mcp.json": "servers",
                "APP/Code/User/settings.json": "mcp.servers",
                "./.vscode/mcp.json": "servers",
            },
            approvals=False,
            ignored_key="mcpServers",
        ),
        Client(
            "codex",
            "Codex",
            {"~/.codex/config.toml": "mcp_servers", "./.codex/config.toml": "mcp_servers"},
            wanted=("enabled_tools",),
            unwanted=("disabled_tools",),
            approvals=False,
            seconds=(
                ("startup_timeout_sec", "start_seconds", 1),
                ("startup_timeout_ms", "start_seconds", 1000),
                ("tool_timeout_sec", "timeout", 1),
            ),
            other_keys=(
                *("env_vars", "bearer_token_env_var", "http_headers", "env_http_headers"),
                *("required", "supports_parallel_tool_calls"),
            ),
            adapted=_from_codex,
        ),
        Client("windsurf", "Windsurf", {"~/.codeium/windsurf/mcp_config.json": "mcpServers"}),
        Client(
            "zed",
            "Zed",
            {"CONFIG/zed/settings.json": "context_servers", "./.zed/settings.json": "context_servers"},
            wanted=(),
            unwanted=(),
            approvals=False,
            other_keys=("settings",),
            adapted=_from_zed,
            no_command="an extension of Zed brings it: only Zed knows its command",
        ),
    )
}

# ---------------------------------------------------------------- what a file says


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
        raise ValueError("it holds no JSON object")
    return cast("dict[str, Any]", found)


def read_file(client: Client, data: bytes, place: ClientFile, around: Surroundings) -> FoundInFile:
    """Return what *data*, the file of *client* at *place*, says.

    Raises:
        ValueError: It cannot be understood.
    """
    toml = place.file.suffix == ".toml"
    content = tomllib.loads(data.decode("utf-8-sig")) if toml else read_json(data)
    local = table(_at(content, client.projects).get(str(around.cwd))) if client.projects else {}
    off = frozenset(name for part in (content, local) for key in client.off for name in texts(part.get(key)))
    if not place.key:
        return replace(_permissions(content, place), off=off)
    own, general = _at(local, place.key), _at(content, place.key)
    servers = [
        *(_server(client, name, entry, replace(place, scope="project"), around) for name, entry in own.items()),
        *(_server(client, name, entry, place, around) for name, entry in general.items()),
    ]
    # A repository must not speak for its user.
    rules = _approvals({**general, **own}, place) if client.approvals and place.scope == "user" else ()
    return FoundInFile(tuple(servers), tuple(rules), off, tuple(_ignored(client, content, place)))


def _at(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    found: Any = content
    for step in key.split("."):
        found = table(found).get(step)
    return table(found)


def _server(client: Client, name: str, given: Any, place: ClientFile, around: Surroundings) -> FoundServer:
    entry = client.adapted(table(given))
    if client.no_command and not entry.get("command") and not entry.get("url"):
        return FoundServer(name, place, skipped=client.no_command)
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


def _ignored(client: Client, content: Mapping[str, Any], place: ClientFile) -> Iterator[str]:
    if client.ignored_key and client.ignored_key in content:
        key = place.key.rpartition(".")[2]
        text = f"{client.title} itself ignores '{client.ignored_key}', its key is '{key}'"
        yield f"{place.file}: {text}; it was left out"


def _permissions(content: Mapping[str, Any], place: ClientFile) -> FoundInFile:
    """Return what settings allow; those of a repository can be committed, settings.local.json too, and only deny."""
    given = table(content.get("permissions"))
    named = [
        (rule, PERMISSION.fullmatch(text)) for rule in get_args(PolicyRule.__value__) for text in texts(given.get(rule))
    ]
    rules = [FoundRule(rule, found[1], found[2] or "*", place) for rule, found in named if found]
    left = [rule for rule in rules if place.repository and rule.rule != "deny"]
    tools = ", ".join(f"{rule.rule} {rule.server}.{rule.tool}" for rule in left[:10])
    problem = f"{place.file}: a repository does not say what you allow; left out: {tools}"
    return FoundInFile(rules=tuple(rule for rule in rules if rule not in left), problems=(problem,) if left else ())
