"""Sessions that a server has forgotten, and servers that ask to be left alone: what is repeated, and what never is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from fastmcp import FastMCP

from free_ports import free_port
from ot.errors import ServerUnavailable, ToolFailed
from ot.proxied.http_replies import pause_asked
from proxied.desk import Door, answered_later, door_to, http_server, http_spec
from proxied.raw_http_server import EVENTS, RawHttpServer, Reply, as_event, raw_server, refusal

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def raw_door(**settings: Any) -> AsyncGenerator[tuple[Door, RawHttpServer]]:
    """Yield a door to a raw server."""
    async with raw_server() as (url, raw), door_to(http_spec(url, **settings)) as door:
        yield door, raw


# ---------------------------------------------------------------- sessions

FORGOTTEN = {
    "404": Reply("", 404, kind=""),
    "404 with a page": Reply("<h1>gone</h1>", 404, kind="text/html"),
    "404 and -32001": Reply(refusal(-32001, "Session not found"), 404),
    "404 and -32600": Reply(refusal(-32600, "Session has been terminated"), 404),
    "410": Reply("", 410, kind=""),
    "400 and -32000": Reply(refusal(-32000, "Bad Request: No valid session ID provided"), 400),
    "200 and -32001": Reply(refusal(-32001, "Session not found"), 200),
    "200 and -32001 in an event": Reply(as_event(refusal(-32001, "Unknown session id", 3)), 200, kind=EVENTS),
}


@pytest.mark.parametrize("name", FORGOTTEN)
async def test_a_call_of_a_forgotten_session_is_made_once_more_in_a_new_one_and_has_one_effect(name: str):
    async with raw_door() as (door, raw):
        await door.call("buy", what="tea")
        raw.forgotten, raw.sessions = FORGOTTEN[name], raw.sessions + 1
        assert await door.call("buy", what="milk") == "bought milk"
        assert raw.effects == ["tea", "milk"]
        assert len(raw.calls()) == 3


async def test_a_server_that_forgets_every_session_is_not_called_for_ever():
    async with raw_door() as (door, raw):
        await door.call("buy", what="tea")
        raw.replies += [Reply("", 404, kind="", effect=False)] * 5
        with pytest.raises(ServerUnavailable, match="HTTP 404: the session is over") as caught:
            await door.call("buy", what="milk")
        assert not caught.value.unknown
        assert (raw.effects, len(raw.calls())) == (["tea"], 3)


async def test_a_timeout_that_has_the_code_of_a_lost_session_is_not_repeated():
    async with raw_door() as (door, raw):
        raw.replies.append(Reply(refusal(-32001, "Request timed out")))
        with pytest.raises(ServerUnavailable, match="Request timed out; whether the call took effect is unknown"):
            await door.call("buy", what="tea")
        assert raw.effects == ["tea"]


async def test_a_session_that_is_lost_after_the_call_told_of_its_progress_is_not_begun_anew():
    progress = '{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": %d, "progress": 1}}'
    async with raw_door() as (door, raw):
        await door.call("buy", what="tea")
        id = raw.calls()[0].message["id"] + 1
        events = as_event(progress % id) + as_event(refusal(-32001, "Session not found", id))
        raw.replies.append(Reply(events, kind=EVENTS))
        with pytest.raises(ServerUnavailable) as caught:
            await door.call("buy", what="milk")
        assert caught.value.unknown
        assert door.of("progress")
        assert raw.effects == ["tea", "milk"]


async def test_an_answer_beside_404_is_the_servers_own_and_not_a_lost_session():
    async with raw_door() as (door, raw):
        raw.replies.append(Reply(refusal(-32601, "no such tool"), 404, effect=False))
        with pytest.raises(ToolFailed, match="no such tool"):
            await door.call("buy", what="tea")
        assert len(raw.calls()) == 1


async def test_a_real_server_that_was_restarted_is_found_again_within_the_same_call():
    effects: list[str] = []

    def shop() -> FastMCP:
        mcp = FastMCP("shop")

        @mcp.tool
        def buy(what: str) -> str:
            effects.append(what)
            return f"bought {what}"

        return mcp

    port = free_port()
    async with door_to(http_spec(f"http://127.0.0.1:{port}/mcp")) as door:
        connection: Any = door.pool.connection(door.spec)
        connection._mode = "legacy"  # only the older protocol has sessions
        async with http_server(shop(), port):
            await door.call("buy", what="tea")
        async with http_server(shop(), port):
            assert await door.call("buy", what="milk") == "bought milk"
    assert effects == ["tea", "milk"]


# ---------------------------------------------------------------- servers that ask to be left alone


def busy(status: int = 429, after: str = "") -> Reply:
    """Return a refusal that asks for a pause of *after*."""
    return Reply("slow down", status, kind="text/plain", headers={"Retry-After": after} if after else {}, effect=False)


async def test_a_429_is_waited_out_and_the_call_made_once():
    async with raw_door() as (door, raw):
        raw.replies += [busy(after="1"), busy(after="0")]
        started = time.monotonic()
        assert await door.call("buy", what="tea") == "bought tea"
        assert time.monotonic() - started >= 1
        assert (raw.effects, len(raw.calls()), raw.sessions) == (["tea"], 3, 1)


async def test_repeated_429s_without_a_pause_are_retried_slowly():
    async with raw_door() as (door, raw):
        raw.replies += [busy(after="0")] * 1000
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.8):
                await door.call("buy", what="tea")
        assert (raw.effects, len(raw.calls()) <= 4) == ([], True)


async def test_a_429_that_asks_for_longer_than_the_call_may_take_is_an_error_at_once():
    async with raw_door() as (door, raw):
        raw.replies.append(busy(after="500"))
        with pytest.raises(ServerUnavailable, match="left alone for 500 s, longer than the call may still") as caught:
            await door.call("buy", what="tea")
        assert (caught.value.unknown, caught.value.retry_seconds) == (False, 500)
        assert (raw.effects, len(raw.calls())) == ([], 1)


async def test_a_429_without_a_time_is_an_error_that_says_so():
    async with raw_door() as (door, raw):
        raw.replies.append(busy())
        with pytest.raises(ServerUnavailable, match="HTTP 429: call it less often, or again later") as caught:
            await door.call("buy", what="tea")
        assert not caught.value.unknown
        assert await door.call("buy", what="milk") == "bought milk"
        assert raw.effects == ["milk"]


async def test_a_503_to_a_call_is_not_repeated_even_if_it_says_when_to_come_back():
    async with raw_door() as (door, raw):
        raw.replies.append(busy(503, "0"))
        with pytest.raises(ServerUnavailable, match="HTTP 503") as caught:
            await door.call("buy", what="tea")
        assert caught.value.unknown
        assert len(raw.calls()) == 1
        assert await answered_later(door, "buy", what="milk") == "bought milk"
        assert raw.effects == ["milk"]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("method", ["initialize", "tools/list"])
async def test_what_has_no_effect_is_asked_again_when_the_server_says(method: str, status: int):
    async with raw_door() as (door, raw):
        raw.instead[method] = [busy(status, "0")]
        assert await door.call("buy", what="tea") == "bought tea"
        assert raw.effects == ["tea"]


async def test_a_server_that_wants_to_be_left_alone_is_not_knocked_at_meanwhile():
    async with raw_door() as (door, raw):
        raw.instead["initialize"] = [busy(after="300")]
        with pytest.raises(ServerUnavailable, match="left alone for 300 s"):
            await door.call("buy", what="tea")
        seen = len(raw.seen)
        with pytest.raises(ServerUnavailable) as caught:
            await door.call("buy", what="tea")
        assert 290 < caught.value.retry_seconds <= 300
        assert len(raw.seen) == seen


async def test_an_outage_does_not_decide_on_the_protocol():
    mcp = FastMCP("shop")

    @mcp.tool
    def buy(what: str) -> str:
        return f"bought {what}"

    async with http_server(mcp) as (url, gate), door_to(http_spec(url)) as door:
        gate.refusals.append((503, b""))
        with pytest.raises(ServerUnavailable, match="HTTP 503"):
            await door.call("buy", what="tea")
        assert await answered_later(door, "buy", what="tea") == "bought tea"
        live: Any = door.pool.connection(door.spec)
        assert live._live.modern


def test_only_a_server_that_refuses_for_now_is_asked_when_to_come_back():
    answers = [httpx2.Response(status, headers={"retry-after": "7"}) for status in (429, 503, 500, 200)]
    assert [pause_asked(answer) for answer in answers] == [7, 7, None, None]
