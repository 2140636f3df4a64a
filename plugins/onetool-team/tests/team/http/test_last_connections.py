"""The end of the web server: what was sent before it is answered, and who comes later is refused by the kernel."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from onetool_team.http import web_server
from onetool_team.http.asgi import Receive, Scope, Send
from onetool_team.http.listen_address import ListenAddress, turn_newcomers_away
from onetool_team.http.web_server import WebServer
from onetool_team.settings import Http
from pace import PATIENCE

pytestmark = pytest.mark.anyio

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ADDRESSES = [pytest.param("127.0.0.1:0", id="IPv4"), pytest.param("[::1]:0", id="IPv6")]


async def answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer anything."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def ending() -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield a connection without a request, to a server that no longer listens; the block leaves it in its end."""
    web, listening = WebServer(Http()), ListenAddress.read("0").bind()
    async with asyncio.timeout(PATIENCE):
        serving = asyncio.ensure_future(web.answer(answer, listening))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        while not web.open_connections():  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0)
        web.should_exit = True
        while listening.fileno() >= 0:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.001)
        yield reader, writer
        await serving
        writer.close()


async def test_a_request_that_comes_on_a_connection_from_before_the_end_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "LAST_SECONDS", PATIENCE)
    async with ending() as (reader, writer):
        writer.write(REQUEST)
        assert (await reader.readline()).startswith(b"HTTP/1.1 204")


async def test_a_connection_on_which_nothing_comes_is_closed_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_server, "LAST_SECONDS", 0.05)
    async with ending() as (reader, _):
        assert await reader.read() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the kernel turn connections away")
@pytest.mark.parametrize("address", ADDRESSES)
def test_who_came_before_is_accepted_and_no_connection_begins_any_more(address: str) -> None:
    with ListenAddress.read(address).bind() as listening, socket.socket(listening.family) as late:
        where = listening.getsockname()
        with socket.create_connection(where[:2]) as early:
            early.sendall(b"early")
            turn_newcomers_away(listening)
            late.settimeout(0.2)
            with pytest.raises(TimeoutError):
                late.connect(where)
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.recv(10) == b"early"
                accepted.sendall(b"answered")
                assert early.recv(10) == b"answered"
            with pytest.raises(BlockingIOError):
                listening.accept()
