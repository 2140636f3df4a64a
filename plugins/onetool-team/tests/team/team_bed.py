"""A team's server in this process: the real front, host, queue and MCP server, over ASGI without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.client import CallToolResult
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.utilities.tests import ASGIServer

from http_server import ACCEPT, MODERN, call
from onetool_team.admission import admitting
from onetool_team.http.asgi import AsgiApp, Message, Receive, Scope, Send, header
from onetool_team.http.streamable_http import StreamableHttp
from onetool_team.identity import SCOPE_KEY, Identity
from onetool_team.live_configuration import LiveConfiguration
from onetool_team.people import TeamFront
from onetool_team.rate_window import RateWindow
from onetool_team.state.always_allowed import AlwaysAllowed
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.state_keys import StateKeys
from ot.config.paths import Paths
from ot.host import Host
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.mcp_server import build_server

URL = "http://127.0.0.1/mcp"
BODY_BYTES = 4 << 20


class KnownByName:
    """Takes the name in a request's Authorization header for whoever sent it: ``ann``, or ``ann run admin``."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name, *scopes = (header(scope, b"authorization") or b"").decode().removeprefix("Bearer ").split()
        scope[SCOPE_KEY] = Identity(principal(name), name, frozenset(scopes or ["run"]))
        await self._app(scope, receive, send)


def principal(name: str) -> str:
    """Return who *name* is."""
    return f"token|{name}"


@dataclass(frozen=True)
class Answered:
    """What came back for one raw request."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes

    @property
    def reply(self) -> dict[str, Any]:
        """The JSON-RPC answer, which came as JSON or as the last event of a stream."""
        text = self.body.decode()
        return json.loads(text if text.startswith("{") else text[text.rindex("data:") + 5 :])

    @property
    def text(self) -> str:
        """The text of a tool's answer."""
        return "\n".join(block.get("text", "") for block in self.reply["result"]["content"])


@dataclass
class TeamBed:
    """The server, and how to reach it as anybody."""

    front: TeamFront
    app: AsgiApp
    mcp: AsgiApp
    """Behind all layers."""
    home: Path

    def client(self, token: str, mode: str = "auto", **options: Any) -> Client[StreamableHttpTransport]:
        """Return a client of whoever *token* names, in the protocol's era *mode*."""
        return ASGIServer(URL, self.app, "http").client(auth=token, mode=mode, **options)  # pyright: ignore[reportArgumentType] - ours are plain mappings

    async def run(self, token: str, command: str, session: str = "") -> str:
        """Return the text of one run, without a client's own work."""
        request = call(command)
        request["params"]["arguments"] |= {"session": session} if session else {}
        return (await self.post(token, request)).text

    async def post(self, token: str, request: Mapping[str, Any]) -> Answered:
        """Return what answers one raw request of the modern era."""
        return await post(self.app, token, request)


async def post(app: AsgiApp, token: str, request: Mapping[str, Any]) -> Answered:
    """Send *request* to *app* as it comes from the wire, and return what it answers."""
    named = {
        "mcp-protocol-version": MODERN,
        "mcp-method": request["method"],
        "mcp-name": str(request["params"].get("name") or request["params"].get("uri") or ""),
    }
    return await post_bytes(app, token, [json.dumps(request).encode()], named)


async def post_bytes(app: AsgiApp, token: str, parts: Sequence[bytes], named: Mapping[str, str]) -> Answered:
    """Send a body that arrives in *parts*, with the headers *named* beside the usual ones."""
    waiting: list[Message] = []
    for number, part in enumerate(parts):
        waiting.insert(0, {"type": "http.request", "body": part, "more_body": number < len(parts) - 1})
    sent: list[Message] = []

    async def receive() -> Message:
        return waiting.pop() if waiting else await _nothing_more()

    async def send(message: Message) -> None:
        sent.append(message)

    await app(_scope(token, named), receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answered(sent[0]["status"], dict(sent[0]["headers"]), body)


async def _nothing_more() -> Message:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


def _scope(token: str, named: Mapping[str, str]) -> Scope:
    usual = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "accept": ACCEPT,
        "authorization": f"Bearer {token}",
    }
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in {**usual, **named}.items() if value],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 0),
        "state": {},
    }


async def run(client: Client[Any], command: str, session: str = "") -> CallToolResult:
    """Return the result of a run, an error too."""
    arguments = {"command": command} | ({"session": session} if session else {})
    return await client.call_tool("run", arguments, raise_on_error=False)


def text_of(result: CallToolResult) -> str:
    """Return all text of a result."""
    return "\n".join(getattr(block, "text", "") for block in result.content)


@asynccontextmanager
async def team(
    directory: Path,
    config: Mapping[str, Any] | None = None,
    *,
    engine: Engine | None = None,
    window: RateWindow | None = None,
    **options: Any,
) -> AsyncGenerator[TeamBed]:
    """Yield a team's server whose operator's configuration, in *directory*, is *config*."""
    home = directory / "operator"
    home.mkdir(exist_ok=True)
    (home / "onetool.yaml").write_text(json.dumps(config or {}), encoding="utf-8")
    paths = Paths(directory, None, home)
    host = Host(paths, engine=engine or PortableEngine())
    front = TeamFront(host, LiveConfiguration(paths), AlwaysAllowed(MemoryState(), StateKeys.ephemeral()), **options)
    mcp = StreamableHttp(build_server(front, "0", "portable"), BODY_BYTES)
    admitted = admitting(front, window or RateWindow())(mcp)
    try:
        async with mcp.running():
            yield TeamBed(front, KnownByName(admitted), mcp, home)
    finally:
        await front.aclose()
        await host.aclose()
