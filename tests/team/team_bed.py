"""A team's server in this process: the real front, host and MCP server, over ASGI without a socket."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.client.client import CallToolResult
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.utilities.asgi_transport import run_asgi_lifespan
from fastmcp.utilities.tests import ASGIServer
from starlette.types import ASGIApp, Receive, Scope, Send

from ot.config.paths import Paths
from ot.host import Host
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.mcp_server import build_server
from ot.team.identity import SCOPE_KEY, Identity
from ot.team.people import TeamFront

URL = "http://127.0.0.1/mcp"


class PatternsOfTests:
    """Keeps what is always allowed in a dictionary."""

    def __init__(self) -> None:
        self.kept: defaultdict[str, list[str]] = defaultdict(list)

    async def patterns(self, principal: str) -> tuple[str, ...]:
        return tuple(self.kept[principal])

    async def add(self, principal: str, pattern: str) -> None:
        self.kept[principal].append(pattern)


class KnownByName:
    """Takes the name in a request's Authorization header for whoever sent it: ``ann``, or ``ann admin``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", ()))
        name, *scopes = headers.get(b"authorization", b"").decode().removeprefix("Bearer ").split()
        scope[SCOPE_KEY] = Identity(principal(name), name, frozenset(scopes or ["run"]))
        await self._app(scope, receive, send)


def principal(name: str) -> str:
    """Return who *name* is."""
    return f"token|{name}"


@dataclass
class TeamBed:
    """The server, and how to reach it as anybody."""

    front: TeamFront
    server: FastMCP
    app: ASGIApp
    home: Path

    def client(self, token: str, mode: str = "auto", **options: Any) -> Client[StreamableHttpTransport]:
        """Return a client of whoever *token* names, in the protocol's era *mode*."""
        reached = ASGIServer(URL, self.app, "http")
        return reached.client(auth=token, mode=mode, **options)

    async def run(self, token: str, command: str, session: str = "") -> str:
        """Return the text of one run."""
        async with self.client(token) as client:
            return text_of(await run(client, command, session))


async def run(client: Client[Any], command: str, session: str = "") -> CallToolResult:
    """Return the result of a run, an error too."""
    arguments = {"command": command} | ({"session": session} if session else {})
    return await client.call_tool("run", arguments, raise_on_error=False)


def text_of(result: CallToolResult) -> str:
    """Return all text of a result."""
    return "\n".join(getattr(block, "text", "") for block in result.content)


@asynccontextmanager
async def team(
    directory: Path, config: Mapping[str, Any] | None = None, *, engine: Engine | None = None, **options: Any
) -> AsyncGenerator[TeamBed]:
    """Yield a team's server whose operator's configuration, in *directory*, is *config*."""
    home = directory / "operator"
    home.mkdir(exist_ok=True)
    (home / "onetool.yaml").write_text(json.dumps(config or {}), encoding="utf-8")
    paths = Paths(directory, None, home)
    host = Host(paths, engine=engine or PortableEngine())
    front = TeamFront(host, paths, PatternsOfTests(), **options)
    server = build_server(front, "0", "portable")
    app = server.http_app(path="/mcp", stateless_http=True, json_response=True)
    try:
        async with run_asgi_lifespan(app):
            yield TeamBed(front, server, KnownByName(app), home)
    finally:
        await front.aclose()
        await host.aclose()
