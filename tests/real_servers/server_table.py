"""Which real MCP servers the tests use: published packages, pinned, that list their tools without an account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class RealServer:
    """One published server: where it comes from, and how it is started once it is installed."""

    name: str
    registry: Literal["npm", "pypi"]
    package: str
    version: str
    program: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def requirement(self) -> str:
        """The package and its version, as the registry's own tool writes them."""
        return f"{self.package}{'@' if self.registry == 'npm' else '=='}{self.version}"


def _npm(name: str, package: str, version: str, program: str, *args: str, **env: str) -> RealServer:
    return RealServer(name, "npm", package, version, program, args, env)


def _pypi(name: str, version: str, *args: str, program: str = "", package: str = "", **env: str) -> RealServer:
    return RealServer(name, "pypi", package or name, version, program or package or name, args, env)


OFFICIAL = "@modelcontextprotocol/server-"
# Port 9 of this machine: it offers the tools of both services and asks neither.
ATLASSIAN = {
    f"{service}_{key}": value
    for service in ("JIRA", "CONFLUENCE")
    for key, value in (("URL", "http://127.0.0.1:9"), ("PERSONAL_TOKEN", "dummy"))
}

# Arguments may name {place}, an empty directory that the server is started in. Keys are not real: nothing is asked
# of the services, only the servers' own lists are read.
REAL_SERVERS: Mapping[str, RealServer] = {
    server.name: server
    for server in (
        _npm("everything", f"{OFFICIAL}everything", "2026.8.31", "mcp-server-everything"),
        _npm("filesystem", f"{OFFICIAL}filesystem", "2026.8.31", "mcp-server-filesystem", "{place}"),
        _npm("memory", f"{OFFICIAL}memory", "2026.8.31", "mcp-server-memory"),
        _npm("playwright", "@playwright/mcp", "0.0.83", "playwright-mcp"),
        _npm("chrome", "chrome-devtools-mcp", "1.11.0", "chrome-devtools-mcp"),
        _npm("notion", "@notionhq/notion-mcp-server", "2.5.2", "notion-mcp-server", NOTION_TOKEN="dummy"),
        _npm("github", f"{OFFICIAL}github", "2025.4.8", "mcp-server-github"),
        _npm("gitlab", f"{OFFICIAL}gitlab", "2025.4.25", "mcp-server-gitlab", GITLAB_PERSONAL_ACCESS_TOKEN="dummy"),
        _npm("slack", f"{OFFICIAL}slack", "2025.4.25", "mcp-server-slack", SLACK_BOT_TOKEN="x", SLACK_TEAM_ID="T1"),
        _pypi("git", "2026.10.19", package="mcp-server-git"),
        _pypi("time", "2026.10.19", package="mcp-server-time"),
        _pypi("fetch", "2026.10.24", package="mcp-server-fetch"),
        _pypi("atlassian", "0.23.1", package="mcp-atlassian", **ATLASSIAN),
        _pypi("arxiv", "0.8.2", package="arxiv-mcp-server"),
        _pypi("redis", "0.5.1", package="redis-mcp-server"),
        _pypi("excel", "2.2.2", "stdio", package="excel-mcp-server"),
    )
}
