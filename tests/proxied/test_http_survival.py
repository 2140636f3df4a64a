"""Replies that break off, drip or are something else: no wrong answer, no effect twice, and an error that helps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ot.errors import ServerUnavailable, ToolFailed
from ot.processes.backoff import Backoff
from ot.proxied.pool import ServerPool
from pace import PATIENCE
from proxied.desk import Door, door_to, http_spec, until
from proxied.raw_http_server import EVENTS, JSON, Framing, RawHttpServer, Reply, Seen, as_event, raw_server, refusal

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def raw_door(**settings: Any) -> AsyncGenerator[tuple[Door, RawHttpServer]]:
    """Yield a door to a raw server; a lost connection costs no pause."""
    pool = ServerPool(backoff=lambda: Backoff(first=1e-6, longest=1e-6))
    async with raw_server() as (url, raw), door_to(http_spec(url, **settings), pool=pool) as door:
        yield door, raw


async def outcome(door: Door, what: str) -> str:
    """Return the answer, or ``unknown`` when the error says that the effect is; anything else is raised."""
    try:
        return await door.call("buy", what=what)
    except ServerUnavailable as error:
        assert error.unknown, error
        assert "unknown, and it was not repeated" in str(error)
        return "unknown"


# ---------------------------------------------------------------- replies that break off

WHOLE = 400


def bought(what: str) -> dict[str, Any]:
    """Return the result of a call."""
    return {"content": [{"type": "text", "text": f"bought {what}"}]}


@pytest.mark.parametrize(
    ("kind", "framing", "first"),
    [
        ("application/json", "length", 0),
        ("application/json", "close", 280),
        (EVENTS, "chunked", 0),
        (EVENTS, "close", 280),
    ],
)
async def test_a_reply_cut_at_any_byte_is_the_right_answer_or_unknown_and_never_repeated(
    kind: str, framing: Framing, first: int
):
    cuts = range(first, WHOLE + 1)
    async with raw_door() as (door, raw):
        for cut in cuts:
            what = f"n{cut:03}"
            raw.replies.append(Reply(kind=kind, framing=framing, cut=cut, whole=WHOLE))
            found = await outcome(door, what)
            # The last bytes only end the framing, and may come too late to matter.
            assert found == "unknown" if cut < WHOLE - 8 else found in (f"bought {what}", "unknown"), cut
        assert await outcome(door, "the last") == "bought the last"
        assert raw.effects == [*(f"n{cut:03}" for cut in cuts), "the last"]
        assert len(raw.calls()) == len(cuts) + 1


async def test_a_stream_with_event_ids_cut_at_any_byte_is_resumed_and_its_call_made_once():
    priming = "id: e1\nretry: 1\ndata:\n\n"

    def rest(seen: Seen) -> Reply:
        call = raw.calls()[-1].message
        right = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": bought(call["params"]["arguments"]["what"])})
        return Reply(as_event(right, "e2"), kind=EVENTS)

    async with raw_door() as (door, raw):
        raw.rest = rest
        head = len(Reply(priming, kind=EVENTS, framing="close").wire(""))
        for cut in range(head - len(priming), head + 1):
            what = f"n{cut:03}"
            raw.replies.append(Reply(priming, kind=EVENTS, framing="close", cut=cut))
            assert await outcome(door, what) == (f"bought {what}" if cut >= head else "unknown")
        # The id is known from here on, however little of the answer came.
        for cut in range(head, head + 60):
            what = f"m{cut:03}"
            other = json.dumps({"jsonrpc": "2.0", "id": 99, "result": bought("something else")})
            answer = as_event(other, "e2", priming)
            raw.replies.append(Reply(answer, kind=EVENTS, framing="close", cut=cut))
            assert await outcome(door, what) == f"bought {what}"
        assert len(raw.effects) == len(set(raw.effects)) == len(raw.calls())


async def test_a_stream_that_keeps_breaking_off_is_resumed_slowly_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("ot.proxied.http_client.RESUMPTION_SECONDS", 30.0)
    async with raw_door() as (door, raw):
        priming = "id: e1\nretry: 0\ndata:\n\n"
        raw.rest = lambda seen: Reply(priming, kind=EVENTS)
        raw.replies.append(Reply(priming, kind=EVENTS))

        def count_resumptions() -> int:
            return sum("last-event-id" in seen.headers for seen in raw.seen)

        calling = asyncio.ensure_future(door.call("buy", what="tea"))
        await until(lambda: count_resumptions() > 0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.7):
                await calling
        assert count_resumptions() <= 5
        assert raw.effects == ["tea"]
        assert await door.call("buy", what="milk") == "bought milk"


async def test_a_reply_that_breaks_off_leaves_the_other_calls_of_its_connection_alone():
    async with raw_door() as (door, raw):
        await door.call("buy", what="tea")
        raw.replies += [Reply(kind=EVENTS, framing="close", cut=90, endless=b": wait\n"), Reply(cut=120), Reply(cut=0)]
        slow = asyncio.ensure_future(door.call("buy", what="slow"))
        await until(lambda: "slow" in raw.effects)
        assert await outcome(door, "cut in its body") == "unknown"
        assert await outcome(door, "without a reply") == "unknown"
        assert not slow.done()
        slow.cancel()
        assert raw.effects == ["tea", "slow", "cut in its body", "without a reply"]


# ---------------------------------------------------------------- slow drips


@pytest.mark.parametrize("kind", [JSON, EVENTS])
async def test_a_reply_that_comes_byte_by_byte_is_the_right_answer(kind: str):
    async with raw_door() as (door, raw):
        raw.replies.append(Reply(kind=kind, framing="chunked", drip=1))
        assert await door.call("buy", what="tea") == "bought tea"
        assert raw.effects == ["tea"]


@pytest.mark.parametrize(("kind", "drop"), [(JSON, b" "), (EVENTS, b": still here\n\n")])
async def test_a_reply_that_never_ends_ends_with_its_call_and_the_connection_goes_on(kind: str, drop: bytes):
    async with raw_door() as (door, raw):
        raw.replies.append(Reply("", kind=kind, framing="close", endless=drop))
        calling = asyncio.ensure_future(door.call("buy", what="tea"))
        await until(lambda: raw.effects == ["tea"])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await calling
        async with asyncio.timeout(PATIENCE):
            await raw.done.wait()
        assert await door.call("buy", what="milk") == "bought milk"
        assert raw.effects == ["tea", "milk"]


async def test_a_handshake_that_drips_for_ever_is_given_up_in_its_time():
    async with raw_door(start_seconds=0.4) as (door, raw):
        raw.instead["initialize"] = [Reply("", framing="close", endless=b" ")]
        with pytest.raises(ServerUnavailable, match=r"did not start within 0\.4 s"):
            await door.call("buy", what="tea")
        async with asyncio.timeout(PATIENCE):
            await raw.done.wait()
        assert raw.effects == []


# ---------------------------------------------------------------- replies that are something else

SPOILED = {
    "a page": Reply("<html>hello</html>", kind="text/html"),
    "plain text": Reply(kind="text/plain"),
    "no type": Reply(kind=""),
    "a page that says JSON": Reply("<html>hello</html>"),
    "nothing": Reply(""),
    "a list": Reply("[1]"),
    "a text": Reply('"done"'),
    "no message": Reply('{"ok": true}'),
    "another answer": Reply('{"jsonrpc": "2.0", "id": 987654, "result": {"content": []}}'),
    "accepted": Reply("", 202),
    "no content": Reply("", 204, kind=""),
    "XML": Reply("<a/>", kind="application/xml"),
}


@pytest.mark.parametrize("name", SPOILED)
async def test_a_reply_of_another_kind_is_no_answer_and_the_error_says_what_to_check(name: str):
    async with raw_door() as (door, raw):
        raw.replies.append(SPOILED[name])
        with pytest.raises(ServerUnavailable, match="unknown, and it was not repeated") as caught:
            await door.call("buy", what="tea")
        assert "check that http://127.0.0.1" in str(caught.value) or "a fault in the server" in str(caught.value)
        assert await door.call("buy", what="milk") == "bought milk"
        assert raw.effects == ["tea", "milk"]


async def test_an_address_that_is_a_web_page_is_said_to_be_no_mcp_server():
    async with raw_door() as (door, raw):
        raw.instead["initialize"] = [SPOILED["a page"]]
        with pytest.raises(ServerUnavailable, match=r"check that http:.* is the address of an MCP server"):
            await door.call("buy", what="tea")


async def test_an_error_without_an_id_reaches_its_call():
    async with raw_door() as (door, raw):
        raw.replies.append(Reply(refusal(-32603, "the database is down"), effect=False))
        with pytest.raises(ToolFailed, match="the database is down"):
            async with asyncio.timeout(10):
                await door.call("buy", what="tea")
