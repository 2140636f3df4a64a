"""What our layers take of the processor, beside the library that they stand in front of."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from fastmcp import FastMCP

from http_server import ACCEPT, CLASSIC, MODERN, call
from onetool_team.http.app import Edge
from onetool_team.http.asgi import AsgiApp, Message, Scope
from onetool_team.http.health import Readiness
from onetool_team.http.loopback_token import LoopbackToken
from onetool_team.http.streamable_http import StreamableHttp
from onetool_team.settings import Http

pytestmark = pytest.mark.anyio

TURNS, REQUESTS = 5, 60
MOST = 1.25
"""A tenth is what it takes; the rest is for machines that are busy."""


def no_op() -> FastMCP:
    server = FastMCP("no-op")

    @server.tool
    async def run(command: str) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        return "2"

    return server


async def ask(app: AsgiApp, token: str, era: str) -> int:
    """Send one request, and return the status of its answer."""
    messages: list[Message] = [{"type": "http.request", "body": json.dumps(call("1+1", era)).encode()}]
    answered = asyncio.Event()
    sent: list[Message] = []

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            answered.set()

    await app(scope(token, era), receive, send)
    return sent[0]["status"]


def scope(token: str, era: str) -> Scope:
    headers = {"host": "localhost", "authorization": f"Bearer {token}", "accept": ACCEPT}
    headers |= {"content-type": "application/json", "mcp-protocol-version": era}
    headers |= {"mcp-method": "tools/call", "mcp-name": "run"}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    made: Scope = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/mcp", "raw_path": b"/mcp"}
    return made | {"scheme": "http", "query_string": b"", "root_path": "", "headers": raw, "state": {}}


async def seconds(app: AsgiApp, token: str, era: str) -> float:
    started = time.process_time()
    for _ in range(REQUESTS):
        assert 200 == await ask(app, token, era)
    return time.process_time() - started


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
async def test_the_layers_take_little_beside_what_they_stand_in_front_of(tmp_path: Path, era: str) -> None:
    mcp, token, readiness = StreamableHttp(no_op(), 1 << 20), LoopbackToken.of(tmp_path), Readiness()
    readiness.ready("portable")
    edge = Edge(Http(), token, readiness, lambda: 1).around(mcp)
    async with mcp.running():
        await seconds(edge, token.token, era)
        turns = [await seconds(edge, token.token, era) / await seconds(mcp, token.token, era) for _ in range(TURNS)]
    assert min(turns) <= MOST, turns
