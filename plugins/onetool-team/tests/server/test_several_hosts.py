"""One server on several hosts: what was never sent goes to another, and what may have taken effect never does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastmcp import FastMCP

from execution.backends.contract_desk import PACK, SOURCE, Desk, settings_for, start_host
from free_ports import free_port
from onetool_team.packs.pack_tools import PackTools
from ot.config.models import Server
from ot.errors import ServerUnavailable
from ot.introspect.proxy_health import proxy_health
from ot.proxied.spec import ServerSpec
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.drain import Drain
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace
from proxied.desk import Door, Gate, door_to, http_server, until
from run_app import paths_in, running_app

pytestmark = pytest.mark.anyio

NOT_BEGUN = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "not ready", "data": {"begun": False}}}
TOO_MANY = (429, b"")
NOT_READY = (503, json.dumps(NOT_BEGUN).encode())
FORBIDDEN = (403, b"")


def spec_of(*urls: str) -> ServerSpec:
    """Return a server at several addresses."""
    return ServerSpec("web", "web", url=urls[0], others=tuple(urls[1:]))


class Shops:
    """Two hosts of one shop, and what each has sold."""

    def __init__(self, door: Door, gates: list[Gate], sold: list[list[str]]) -> None:
        self.door = door
        self.gates = gates
        self.sold = sold

    def health(self) -> str:
        """Return what ``ot.health()`` says of the server."""
        return json.dumps(proxy_health({"web": self.door.pool.state(self.door.spec)}, {}))


def shop_that_notes(sold: list[str]) -> FastMCP:
    """Return a server whose tool has an effect."""
    mcp = FastMCP("shop")

    @mcp.tool
    async def buy(what: str) -> str:
        sold.append(what)
        return f"bought {what}"

    return mcp


@asynccontextmanager
async def two_shops() -> AsyncGenerator[Shops]:
    sold: list[list[str]] = [[], []]
    first, second = map(shop_that_notes, sold)
    async with http_server(first) as (a, gate_a), http_server(second) as (b, gate_b), door_to(spec_of(a, b)) as door:
        yield Shops(door, [gate_a, gate_b], sold)


@pytest.mark.parametrize("refusal", [TOO_MANY, NOT_READY, FORBIDDEN])
async def test_a_call_that_a_host_did_not_take_goes_to_the_other_at_once(refusal: tuple[int, bytes]) -> None:
    async with two_shops() as shops:
        await shops.door.call("buy", what="tea")
        shops.gates[0].refusals.append(refusal)
        assert "bought milk" == await shops.door.call("buy", what="milk")
        assert [["tea"], ["milk"]] == shops.sold


async def test_a_call_that_may_have_taken_effect_is_unknown_and_goes_nowhere_else() -> None:
    async with two_shops() as shops:
        await shops.door.call("buy", what="tea")
        shops.gates[0].refusals.append((503, b""))  # as of a gateway, which may have passed it on
        with pytest.raises(ServerUnavailable, match=r"HTTP 503.*unknown, and it was not repeated") as raised:
            await shops.door.call("buy", what="milk")
        assert raised.value.unknown
        assert [["tea"], []] == shops.sold


async def test_a_dead_host_is_skipped_told_of_and_used_again_when_it_is_back() -> None:
    sold: list[list[str]] = [[], []]
    first, second = map(shop_that_notes, sold)
    port = free_port()
    dead = f"http://127.0.0.1:{port}/mcp"
    async with http_server(second) as (alive, _), door_to(spec_of(dead, alive)) as door:
        assert "bought tea" == await door.call("buy", what="tea")
        state = door.pool.state(door.spec)
        assert ("connected", True) == (state["state"], f"127.0.0.1:{port}: no connection" in state["why"])
        assert f"127.0.0.1:{port}: no connection" in json.dumps(proxy_health({"web": state}, {}))
        async with http_server(first, port):
            await until(lambda: not door.pool.connections(door.spec)[0].rests)
            await door.call("buy", what="milk")
        assert [["milk"], ["tea"]] == sold


async def test_when_no_host_is_there_one_error_names_them_all() -> None:
    urls = [f"http://127.0.0.1:{free_port()}/mcp" for _ in range(2)]
    async with door_to(spec_of(*urls)) as door:
        with pytest.raises(ServerUnavailable) as raised:
            await door.call("buy", what="tea")
    assert str(raised.value).startswith("the server 'web' is not available: none of its 2 hosts takes the call: ")
    assert all(urlsplit(url).netloc in str(raised.value) for url in urls)
    assert not raised.value.unknown


async def test_calls_are_spread_over_hosts() -> None:
    async with two_shops() as shops:
        await asyncio.gather(*(shops.door.call("buy", what=str(number)) for number in range(8)))
        assert all(shops.sold)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"url": "http://a/mcp", "urls": ["http://b/mcp"]}, "either url or urls"),
        ({"urls": ["http://a/mcp"], "auth": "oauth"}, "credentials, if any, are in headers"),
        ({"urls": ["ftp://a/mcp"]}, "not an address of a server"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Server.model_validate(settings)


# ---------------------------------------------------------------- real processes


@asynccontextmanager
async def desk_at(tmp_path: Path, *urls: str, token: str = "") -> AsyncGenerator[Desk]:
    app = Workspace.alone(paths_in(tmp_path, settings_for(*urls, token=token)), engine=PortableEngine())
    try:
        yield Desk(app, lambda source: None)
    finally:
        await app.aclose()


async def test_a_host_killed_during_a_call_leaves_it_unknown_and_the_next_goes_to_the_other(tmp_path: Path) -> None:
    with start_host(tmp_path / "a") as first, start_host(tmp_path / "b", token_of=first) as second:
        async with desk_at(tmp_path, first.url, second.url, token=first.token) as desk:
            waiting = asyncio.create_task(desk.call("wait", str(tmp_path)))
            await until((tmp_path / "begun").exists)
            first.kill()
            with pytest.raises(ServerUnavailable, match=rf"127.0.0.1:{first.port}.*is unknown") as raised:
                await waiting
            assert raised.value.unknown
            assert 7 == await desk.call("echo", 7)
            told = await desk.app.run("ot.health()['proxy']")
            assert f"127.0.0.1:{first.port}: " in told.text
            second.kill()
            with pytest.raises(ServerUnavailable, match="none of its 2 hosts takes the call") as raised:
                await desk.call("echo", 7)
            assert not raised.value.unknown


async def test_a_host_that_is_shutting_down_takes_no_calls_and_none_is_lost(tmp_path: Path) -> None:
    drain = Drain()
    (tmp_path / "here").mkdir()
    async with running_app(tmp_path, {PACK: SOURCE}) as there:
        ending = build_server(OneUser(there), "1", drain=drain, offer=partial(PackTools, [PACK]))
        other = build_server(OneUser(there), "1", offer=partial(PackTools, [PACK]))
        async with (
            http_server(ending) as (a, gate),
            http_server(other) as (b, _),
            desk_at(tmp_path / "here", a, b) as desk,
        ):
            assert 1 == await desk.call("echo", 1)
            drain.begin()
            asked = len(gate.headers)
            assert [2, 3] == [await desk.call("echo", number) for number in (2, 3)]
            assert asked < len(gate.headers), "it was not asked"
