"""The clients that OneTool knows, one row each: where its servers are listed, in which form, and what is special."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote, urlencode

from ot.config.clients.server_entry import ClientFile, Surroundings, table


@dataclass(frozen=True, slots=True)
class Client:
    """A client; the defaults are the form that most of them share."""

    name: str
    title: str
    files: Mapping[str, str]
    """The key under which each file lists its servers, or nothing for one that holds permissions.

    The first is the user's own, which OneTool is added to. ``~`` is the home directory, ``.`` the project, ``APP``
    where applications keep settings, ``CONFIG`` ~/.config, and ``NAME=~/place`` the variable that moves a place.
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
    allowed: str = ""
    """The list of servers that are used, all others being off, where a file has it."""
    ignored_key: str = ""
    """Another client's key, which this one ignores itself."""
    no_command: str = ""
    """Why a server without a command or an address cannot be taken."""
    program: str = ""
    """The command that is there when the client is installed."""
    typed: bool = False
    """Whether an entry says that its server is a process."""
    own_keys: Mapping[str, int] = field(default_factory=dict[str, int])
    """What else OneTool's entry says: how long the client waits, or that its model is shown the tool at once."""
    link: Callable[[str, Mapping[str, Any]], str] | None = None
    """Makes a link that adds a server when it is opened."""
    has_project: bool = True
    """Whether the client starts its servers in a project's directory."""
    afterwards: str = "start a new session"
    """What makes the client read its file again."""

    def places(self, around: Surroundings) -> tuple[ClientFile, ...]:
        """Return the paths of its files, whether or not they exist."""
        return tuple(self._place(path, key, around) for path, key in self.files.items())

    def own_file(self, around: Surroundings) -> ClientFile:
        """Return the user's file, which OneTool is added to."""
        return self.places(around)[0]

    def own_entry(self, command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
        """Return the entry of a server that is started by *command*, as the client writes it."""
        entry: dict[str, Any] = {"type": "stdio"} if self.typed else {}
        entry |= {"command": command[0], "args": list(command[1:])}
        return entry | ({"env": dict(env)} if env else {}) | dict(self.own_keys)

    def _place(self, path: str, key: str, around: Surroundings) -> ClientFile:
        variable, _, usual = path.rpartition("=")
        base, _, rest = usual.partition("/")
        if base == ".":
            # In the home directory a project's files are the user's own.
            return ClientFile(self.name, around.cwd / rest, "project", around.cwd != around.home, key)
        directory, _, name = rest.rpartition("/")
        moved = around.environ.get(variable) if variable else None
        folder = Path(moved) if moved else _base(base, around) / directory
        return ClientFile(self.name, folder / name, "user", key=key)


def _base(name: str, around: Surroundings) -> Path:
    applications = {
        "darwin": around.home / "Library" / "Application Support",
        "win32": Path(around.environ.get("APPDATA") or around.home / "AppData" / "Roaming"),
    }.get(around.platform, Path(around.environ.get("XDG_CONFIG_HOME") or around.home / ".config"))
    config = applications if around.platform == "win32" else around.home / ".config"
    return {"~": around.home, "APP": applications, "CONFIG": config}[name]


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


def _from_gemini(entry: dict[str, Any]) -> dict[str, Any]:
    """Return *entry* with its address under the usual key, and with variables in braces."""
    variables = {
        key: {name: re.sub(r"\$(\w+)", r"${\1}", str(text)) for name, text in table(entry.get(key)).items()}
        for key in ("env", "headers")
        if key in entry
    }
    address = {"url": entry["httpUrl"], "type": "http"} if "httpUrl" in entry else {}
    return {**entry, **variables, **address}


def _cursor_link(name: str, entry: Mapping[str, Any]) -> str:
    config = base64.b64encode(json.dumps(entry, separators=(",", ":")).encode()).decode()
    return f"cursor://anysphere.cursor-deeplink/mcp/install?{urlencode({'name': name, 'config': config})}"


def _vscode_link(name: str, entry: Mapping[str, Any]) -> str:
    return f"vscode:mcp/install?{quote(json.dumps({'name': name, **entry}, separators=(',', ':')), safe='')}"


# ---------------------------------------------------------------- the table

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            "Claude Code",
            {
                "CLAUDE_CONFIG_DIR=~/.claude.json": "mcpServers",
                "./.mcp.json": "mcpServers",
                "CLAUDE_CONFIG_DIR=~/.claude/settings.json": "",
                "./.claude/settings.json": "",
                "./.claude/settings.local.json": "",
            },
            projects="projects",
            off=("disabledMcpServers", "disabledMcpjsonServers"),
            other_keys=("alwaysLoad",),
            program="claude",
            typed=True,
            own_keys={"alwaysLoad": True},
        ),
        Client(
            "claude-desktop",
            "Claude Desktop",
            {"APP/Claude/claude_desktop_config.json": "mcpServers"},
            has_project=False,
            afterwards="quit and open Claude Desktop",
        ),
        Client(
            "cursor",
            "Cursor",
            {"~/.cursor/mcp.json": "mcpServers", "./.cursor/mcp.json": "mcpServers"},
            program="cursor",
            link=_cursor_link,
            afterwards="switch onetool on in Cursor's settings, under MCP",
        ),
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
            program="code",
            typed=True,
            link=_vscode_link,
            afterwards="run the command 'MCP: List Servers' in VS Code and start onetool",
        ),
        Client(
            "codex",
            "Codex",
            {"CODEX_HOME=~/.codex/config.toml": "mcp_servers", "./.codex/config.toml": "mcp_servers"},
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
            program="codex",
            own_keys={"startup_timeout_sec": 60, "tool_timeout_sec": 600},
        ),
        Client(
            "windsurf",
            "Windsurf",
            {"~/.codeium/windsurf/mcp_config.json": "mcpServers"},
            program="windsurf",
            has_project=False,
            afterwards="press Refresh in Windsurf's list of MCP servers",
        ),
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
            program="zed",
            own_keys={"timeout": 600},
            afterwards="nothing: Zed notices by itself",
        ),
        Client(
            "gemini-cli",
            "Gemini CLI",
            {"~/.gemini/settings.json": "mcpServers", "./.gemini/settings.json": "mcpServers"},
            approvals=False,
            seconds=(("timeout", "timeout", 1000),),
            other_keys=("httpUrl",),
            adapted=_from_gemini,
            off=("mcp.excluded",),
            allowed="mcp.allowed",
            program="gemini",
        ),
    )
}
