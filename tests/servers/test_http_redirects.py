"""Redirects: within one origin they are followed, and across origins nothing is sent."""

from __future__ import annotations

import pytest

from ot.errors import ServerUnavailable
from servers.desk import door_to, http_spec
from servers.raw_http_server import Reply, raw_server

pytestmark = pytest.mark.anyio


def leading_to(url: str, status: int = 307) -> Reply:
    """Return a redirect."""
    return Reply("", status, kind="", headers={"Location": url}, effect=False)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("method", ["initialize", "tools/call"])
async def test_a_redirect_to_another_origin_is_refused_and_carries_nothing_there(status: int, method: str):
    async with raw_server() as (url, raw), raw_server() as (elsewhere, other):
        async with door_to(http_spec(url, headers={"Authorization": "Bearer key"})) as door:
            (raw.replies if method == "tools/call" else raw.instead.setdefault(method, [])).append(
                leading_to(f"{elsewhere}?token=abc", status)
            )
            with pytest.raises(ServerUnavailable) as caught:
                await door.call("buy", what="tea")
        here, there = url.removesuffix("/mcp"), elsewhere.removesuffix("/mcp")
        assert f"it redirects from {here} to {there}, and neither the request nor its headers" in str(caught.value)
        assert "write its address into the server's url" in str(caught.value)
        assert "abc" not in str(caught.value)
        assert caught.value.unknown == (method == "tools/call" and status not in (307, 308))
        assert (other.connections, raw.effects, other.effects) == (0, [], [])


async def test_a_redirect_within_the_origin_is_followed_and_the_call_made_once():
    async with raw_server() as (url, raw), door_to(http_spec(url)) as door:
        raw.replies.append(leading_to("/mcp/"))
        assert await door.call("buy", what="tea") == "bought tea"
        assert [seen.path for seen in raw.calls()] == ["/mcp", "/mcp/"]
        assert raw.effects == ["tea"]


async def test_a_redirect_that_would_lose_the_call_is_refused():
    async with raw_server() as (url, raw), door_to(http_spec(url)) as door:
        raw.replies.append(leading_to("/login", 302))
        with pytest.raises(ServerUnavailable, match=r"redirects to http:.*/login, which was not followed") as caught:
            await door.call("buy", what="tea")
        assert caught.value.unknown
        assert await door.call("buy", what="milk") == "bought milk"
        assert raw.effects == ["milk"]
