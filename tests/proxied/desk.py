"""What the tests of proxied servers share: the fake server's settings, a door to it, and real servers on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastmcp import FastMCP

from callers import asking
from free_ports import free_port
from ot.errors import ToolError
from ot.execution.call_context import CallContext
from ot.execution.caller import AskUser
from ot.processes.backoff import Backoff
from ot.processes.child_environ import worker_environ
from ot.proxied.backend import McpProxyBackend
from ot.proxied.definitions import ServerDefinitions
from ot.proxied.pool import ServerPool
from ot.proxied.spec import ServerSpec
from ot.registry.tool import Tool
from pace import PATIENCE
from server_process import process_tree

FAKE = Path(__file__).with_name("misbehaving_server.py")


def fake(*options: str, **settings: Any) -> dict[str, Any]:
    """Return the settings of a fake server."""
    return {"command": sys.executable, "args": [str(FAKE), *options], **settings}


def fake_spec(*options: str, **settings: Any) -> ServerSpec:
    """Return the spec of a fake server."""
    settings["env"] = worker_environ(os.environ) | settings.get("env", {})
    return ServerSpec("fake", "fake", command=sys.executable, args=(str(FAKE), *options), **settings)


def short_backoff() -> Backoff:
    """Return a backoff for tests that fail on purpose."""
    return Backoff(first=0.02, longest=0.05)


class Door:
    """Calls tools of one server as the executor would, and keeps what they tell."""

    def __init__(self, spec: ServerSpec, pool: ServerPool | None = None, ask: AskUser | None = None) -> None:
        self.lists: list[ServerDefinitions] = []
        self.spec = spec
        self.pool = pool or ServerPool(lambda server, found: self.lists.append(found), backoff=short_backoff)
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self._ask = ask
        self._backend = McpProxyBackend(self.pool, {spec.name: spec})

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Return the value of the server's tool *name*."""
        return await self.ask_for({"tool": name}, arguments)

    async def method(self, method: str, **arguments: Any) -> Any:
        """Return what one of the protocol's own methods gives."""
        return await self.ask_for({"method": method}, arguments)

    async def ask_for(self, target: dict[str, Any], arguments: dict[str, Any]) -> Any:
        tool = Tool("fake", "tool", target=json.dumps({"server": self.spec.name, **target}))
        context = CallContext(asking(self._ask), "run", 1, time.monotonic() + 30, told=self._take)
        await self._backend.prepare(tool, context)
        return await self._backend.call(tool, arguments, context)

    def _take(self, what: str, tool: str, details: Mapping[str, Any]) -> None:
        self.told.append((what, details))

    def of(self, what: str) -> list[Any]:
        """Return what was told of one kind."""
        return [details for kind, details in self.told if kind == what]

    @property
    def state(self) -> Mapping[str, Any]:
        """How the server is."""
        return self.pool.states()[self.spec.key]


@asynccontextmanager
async def door_to(spec: ServerSpec, ask: AskUser | None = None, **options: Any) -> AsyncGenerator[Door]:
    """Yield a door to a server, and end the server."""
    door = Door(spec, ask=ask, **options)
    try:
        yield door
    finally:
        await door.pool.aclose()


async def until(true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Return when something is true that no event tells of."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.005)


async def answered_later(door: Door, name: str, seconds: float = PATIENCE, **arguments: Any) -> Any:
    """Return the value of a call that is tried until the server is back."""
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await door.call(name, **arguments)
            except ToolError:
                await asyncio.sleep(0.01)


def below_this() -> set[int]:
    """Return the processes that this one has started."""
    return {stat.pid for stat in process_tree(os.getpid())} - {os.getpid()}


class Gate:
    """Stands before a server's app and answers some requests itself, with the statuses that it was given."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.refusals: list[tuple[int, bytes]] = []
        self.headers: list[dict[str, str]] = []
        self.sessions: set[str] = set()
        self.forgotten: set[str] = set()
        """Sessions that the server has lost, as if it had been restarted."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.headers.append(headers)
            session = headers.get("mcp-session-id", "")
            self.sessions |= {session} if session else set()
            if scope["method"] == "POST" and session in self.forgotten:
                body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Session not found"}}
                return await _refuse(send, 404, json.dumps(body).encode())
            if scope["method"] == "POST" and self.refusals:
                return await _refuse(send, *self.refusals.pop(0))
        return await self._app(scope, receive, send)


async def _refuse(send: Any, status: int, body: bytes) -> None:
    kind = b"application/json" if body else b"text/plain"
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def http_server(
    mcp: FastMCP, port: int = 0, json_response: bool = False, **options: Any
) -> AsyncGenerator[tuple[str, Gate]]:
    """Yield the address of a real server on loopback, and the gate before it."""
    gate = Gate(mcp.http_app(json_response=json_response))
    async with served(gate, port, lifespan="on", **options) as url:
        yield url, gate


@asynccontextmanager
async def served(app: Any, port: int = 0, **options: Any) -> AsyncGenerator[str]:
    """Yield the address of an app on loopback."""
    port = port or free_port()
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", **options))
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started, 20)
    scheme = "https" if options.get("ssl_keyfile") else "http"
    try:
        yield f"{scheme}://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = server.force_exit = True
        await asyncio.wait((serving,), timeout=PATIENCE)


def http_spec(url: str, **settings: Any) -> ServerSpec:
    """Return the spec of a server at an address."""
    return ServerSpec("web", "web", url=url, **settings)


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file that may not be there."""
    return file.read_text().split() if file.exists() else []


def counted(words: Iterable[str]) -> dict[str, int]:
    """Return how often each word came."""
    found: dict[str, int] = {}
    for word in words:
        found[word] = found.get(word, 0) + 1
    return found
