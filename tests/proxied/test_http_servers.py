"""Servers at an address: real ones on loopback, and what HTTP can do to a call."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Context, FastMCP
from mcp_types import ToolListChangedNotification

from free_ports import free_port
from ot.errors import ServerUnavailable, ToolFailed
from proxied.desk import Door, answered_later, door_to, http_server, http_spec, served, until

pytestmark = pytest.mark.anyio


class Shop:
    """A server with a tool that has an effect, which it counts."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.mcp = FastMCP("shop", instructions="buy here")

        @self.mcp.tool
        async def buy(what: str) -> str:
            self.effects.append(what)
            return f"bought {what}"

        @self.mcp.tool
        async def doze() -> str:
            self.effects.append("doze")
            await asyncio.sleep(0.5)
            return "awake"

        @self.mcp.tool
        async def hang() -> str:
            self.effects.append("hang")
            await asyncio.sleep(30)
            return "never"

        @self.mcp.tool
        async def grow(ctx: Context) -> str:
            @self.mcp.tool
            async def grown() -> str:
                return "grown"

            await ctx.send_notification(ToolListChangedNotification())
            return "ok"


async def test_a_call_over_http_gives_its_value_and_sends_only_the_headers_of_the_settings():
    shop = Shop()
    async with http_server(shop.mcp) as (url, gate), door_to(http_spec(url, headers={"X-Key": "abc"})) as door:
        assert await door.call("buy", what="tea") == "bought tea"
        assert all(headers["x-key"] == "abc" for headers in gate.headers)
        assert door.lists[-1].instructions == "buy here"


def with_a_bad_tool(app: Any) -> Any:
    """Return *app* with an entry in its list of tools that the protocol does not allow."""

    async def spoiled(scope: Any, receive: Any, send: Any) -> None:
        started: list[Any] = []

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                started.append(message)
            elif started:
                message["body"] = message["body"].replace(b'"tools":[', b'"tools":[{"name":5},')
                length = (b"content-length", str(len(message["body"])).encode())
                headers = [pair for pair in started[0]["headers"] if pair[0] != length[0]]
                await send({**started.pop(), "headers": [*headers, length]})
                await send(message)
            else:
                await send(message)

        await app(scope, receive, sent)

    return spoiled


async def test_one_bad_tool_over_http_loses_neither_the_server_nor_its_other_tools():
    shop = Shop()
    app = with_a_bad_tool(shop.mcp.http_app(json_response=True))
    async with served(app, lifespan="on") as url, door_to(http_spec(url)) as door:
        assert await door.call("buy", what="tea") == "bought tea"
        assert [tool["name"] for tool in door.lists[-1].tools][:2] == ["buy", "doze"]


@pytest.mark.parametrize("status", [404, 410])
async def test_a_session_that_is_gone_is_begun_anew_and_the_call_made_once(status: int):
    shop = Shop()
    async with http_server(shop.mcp) as (url, gate), door_to(http_spec(url)) as door:
        await door.call("buy", what="tea")
        gate.refusals.append((status, b""))
        assert await door.call("buy", what="milk") == "bought milk"
        assert shop.effects == ["tea", "milk"]


async def test_a_503_is_no_answer_and_is_not_repeated_and_the_next_call_works():
    shop = Shop()
    async with http_server(shop.mcp) as (url, gate), door_to(http_spec(url)) as door:
        await door.call("buy", what="tea")
        gate.refusals.append((503, b""))
        with pytest.raises(ServerUnavailable, match="HTTP 503") as caught:
            await door.call("buy", what="milk")
        assert caught.value.unknown
        assert shop.effects == ["tea"]
        assert await answered_later(door, "buy", what="bread") == "bought bread"


async def test_the_refusal_of_one_call_leaves_the_others_alone():
    shop = Shop()
    async with http_server(shop.mcp) as (url, gate), door_to(http_spec(url)) as door:
        await door.call("buy", what="tea")
        slow = asyncio.ensure_future(door.call("doze"))
        await until(lambda: "doze" in shop.effects)
        gate.refusals.append((503, b""))
        with pytest.raises(ServerUnavailable):
            await door.call("buy", what="milk")
        assert await slow == "awake"


async def test_a_lost_session_of_the_older_protocol_is_begun_anew(monkeypatch: pytest.MonkeyPatch):
    shop = Shop()
    async with http_server(shop.mcp) as (url, gate), door_to(http_spec(url)) as door:
        older(door)
        await door.call("buy", what="tea")
        await until(lambda: bool(gate.sessions))
        gate.forgotten |= gate.sessions
        assert await door.call("buy", what="milk") == "bought milk"
        assert shop.effects == ["tea", "milk"]


def older(door: Door) -> None:
    """Let the door's server be spoken to in the older protocol."""
    connection: Any = door.pool.connection(door.spec)
    connection._mode = "legacy"  # no setting says it


async def test_a_refused_key_is_said_to_be_refused():
    shop = Shop()
    async with http_server(shop.mcp) as (url, gate), door_to(http_spec(url)) as door:
        gate.refusals += [(401, b"")] * 4
        with pytest.raises(ServerUnavailable, match="HTTP 401"):
            await door.call("buy", what="tea")


async def test_nobody_there_is_an_error_at_once_and_who_comes_later_is_found():
    shop, port = Shop(), free_port()
    async with door_to(http_spec(f"http://127.0.0.1:{port}/mcp")) as door:
        with pytest.raises(ServerUnavailable, match="no connection"):
            await door.call("buy", what="tea")
        async with http_server(shop.mcp, port):
            assert await answered_later(door, "buy", what="tea") == "bought tea"
    assert shop.effects == ["tea"]


async def test_a_server_that_goes_away_between_calls_is_found_again():
    shop, port = Shop(), free_port()
    async with door_to(http_spec(f"http://127.0.0.1:{port}/mcp")) as door:
        async with http_server(shop.mcp, port):
            await door.call("buy", what="tea")
        with pytest.raises(ServerUnavailable):
            await door.call("buy", what="milk")
        assert door.state["state"] == "failed"
        async with http_server(Shop().mcp, port):
            assert await answered_later(door, "buy", what="bread") == "bought bread"
    assert shop.effects == ["tea"]


async def test_a_certificate_that_nobody_vouches_for_is_refused_in_plain_words(tmp_path: Path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    await asyncio.to_thread(
        subprocess.run, [*make, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    shop = Shop()
    options: dict[str, Any] = {"ssl_keyfile": str(key), "ssl_certfile": str(certificate)}
    async with http_server(shop.mcp, **options) as (url, _), door_to(http_spec(url)) as door:
        with pytest.raises(ServerUnavailable, match="TLS") as caught:
            await door.call("buy", what="tea")
        assert "certificate" in caught.value.why


async def test_a_cancelled_call_leaves_the_connection_usable():
    shop = Shop()
    async with http_server(shop.mcp) as (url, _), door_to(http_spec(url)) as door:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await door.call("hang")
        assert await door.call("buy", what="tea") == "bought tea"


@pytest.mark.parametrize("era", ["newer", "older"])
async def test_a_new_tool_is_heard_of_in_both_eras(era: str):
    shop = Shop()
    async with http_server(shop.mcp) as (url, _), door_to(http_spec(url)) as door:
        if era == "older":
            older(door)
        await door.call("buy", what="tea")
        await door.call("grow")
        await until(lambda: any(tool["name"] == "grown" for tool in door.lists[-1].tools))
        assert await door.call("grown") == "grown"


async def test_a_reply_that_is_too_large_fails_its_call_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ot.proxied.http_replies.MAX_REPLY_BYTES", 200_000)
    mcp = FastMCP("large")

    @mcp.tool
    def large(size: int) -> str:
        return "x" * size

    async with http_server(mcp, json_response=True) as (url, _), door_to(http_spec(url)) as door:
        assert await door.call("large", size=1000) == "x" * 1000
        with pytest.raises(ToolFailed, match="200,000 bytes"):
            await door.call("large", size=300_000)
        assert await door.call("large", size=10) == "x" * 10
