"""Where a project's server may be: not at an internal address, however it is written, unless its user allows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot.config.models import Server
from ot.config.paths import Paths
from ot.config.secrets import Secrets
from ot.errors import ServerUnavailable
from ot.servers.internal_addresses import AddressRule
from ot.servers.reply_faults import Refused
from ot.servers.spec import resolve_spec
from ot_sdk.addresses import is_internal
from servers.desk import door_to, http_spec
from servers.raw_http_server import raw_server

pytestmark = pytest.mark.anyio

INTERNAL = (
    *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "100.100.100.200", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1"),
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fc00::1", "ff02::1", "::ffff:127.0.0.1"),
    *("::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "::127.0.0.1", "2001:db8::1"),
    *("fec0::1", "64:ff9b:1::7f00:1", "::ffff:0:127.0.0.1", "2001:0:7f00:1::", "192.0.0.192", "168.63.129.16"),
    *("2002:808:808::1", "no address"),
)
PUBLIC = ("1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808")


def test_internal_addresses_are_known_in_every_notation():
    assert [address for address in INTERNAL if not is_internal(address)] == []
    assert [address for address in PUBLIC if is_internal(address)] == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]"])
async def test_a_projects_server_at_an_internal_address_is_refused_before_anything_is_sent(host: str):
    async with raw_server() as (url, raw):
        spec = http_spec(url.replace("127.0.0.1", host), internal_hosts=(), headers={"Authorization": "Bearer key"})
        async with door_to(spec) as door:
            with pytest.raises(ServerUnavailable) as caught:
                await door.call("buy", what="tea")
        port = url.rsplit(":", 1)[1].removesuffix("/mcp")
        assert "a project's server may not be there; nothing was sent" in str(caught.value)
        assert f"{host}:{port}' to security.internal_hosts in your own configuration" in str(caught.value)
        assert raw.connections == 0


@pytest.mark.parametrize("allowed", ["localhost", "localhost:{port}", "LocalHost:{port}"])
async def test_a_host_that_the_user_allows_is_reached(allowed: str):
    async with raw_server() as (url, raw):
        port = url.rsplit(":", 1)[1].removesuffix("/mcp")
        hosts = (allowed.format(port=port),)
        async with door_to(http_spec(url.replace("127.0.0.1", "localhost"), internal_hosts=hosts)) as door:
            assert await door.call("buy", what="tea") == "bought tea"
        async with door_to(http_spec(url, internal_hosts=hosts)) as door:
            with pytest.raises(ServerUnavailable, match="may not be there"):
                await door.call("buy", what="milk")
        assert raw.effects == ["tea"]


async def test_a_port_that_the_user_allows_is_that_port_alone():
    rule = AddressRule(("localhost:3000", "10.0.0.5"))
    rule.check_address("10.0.0.5", 99, "10.0.0.5")
    await rule.check("localhost", 3000)
    with pytest.raises(Refused, match="'localhost:3001' to security"):
        await rule.check("localhost", 3001)


async def test_a_name_that_gets_an_internal_address_after_it_was_looked_up_is_refused_once_connected(
    monkeypatch: pytest.MonkeyPatch,
):
    async def looked_up(self: AddressRule, host: str, port: int) -> None:
        """Find nothing, as if the name had been public a moment ago."""

    monkeypatch.setattr(AddressRule, "check", looked_up)
    async with raw_server() as (url, raw), door_to(http_spec(url, internal_hosts=())) as door:
        with pytest.raises(ServerUnavailable, match=r"internal address 127\.0\.0\.1"):
            await door.call("buy", what="tea")
        assert raw.seen == []


def test_only_the_servers_of_a_project_are_held_to_it(tmp_path: Path):
    server = Server(url="http://localhost:3000/mcp")
    paths = Paths(tmp_path, None, tmp_path / "global")
    mine = resolve_spec("s", server, Secrets(), paths, internal_hosts=("a",))
    projects = resolve_spec("s", server, Secrets(), paths, tmp_path / ".onetool", internal_hosts=("a",))
    assert (mine.internal_hosts, projects.internal_hosts) == (None, ("a",))
    assert mine.key != projects.key
