"""Where requests to servers may go: no internal address, no redirect, and signed as the rule says."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import pytest

from ot.config.models import OAuthSettings, Server
from ot.config.paths import Paths
from ot.config.secrets import Secrets
from ot.errors import CannotAsk, ServerUnavailable
from ot.proxied.call_trace import CallTrace, current_trace
from ot.proxied.failure_words import MAX_TEXT
from ot.proxied.failures import Lost, call_failure
from ot.proxied.guarded_client import GuardedClient
from ot.proxied.http_client import ServerClient
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.messages import StrayOutput
from ot.proxied.place import ClientRoots
from ot.proxied.reply_faults import Refused
from ot.proxied.session import LiveSession
from ot.proxied.spec import resolve_spec
from ot_sdk.network import is_internal
from proxied.desk import door_to, http_spec
from proxied.raw_http_server import Reply, raw_server

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
        spec = http_spec(url.replace("127.0.0.1", host), of_project=True, headers={"Authorization": "Bearer key"})
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
        async with door_to(
            http_spec(url.replace("127.0.0.1", "localhost"), of_project=True, internal_hosts=hosts)
        ) as door:
            assert await door.call("buy", what="tea") == "bought tea"
        async with door_to(http_spec(url, of_project=True, internal_hosts=hosts)) as door:
            with pytest.raises(ServerUnavailable, match="may not be there"):
                await door.call("buy", what="milk")
        assert raw.effects == ["tea"]


async def test_a_port_that_the_user_allows_is_that_port_alone():
    rule = AddressRule(("https://mcp.example/mcp",), ("localhost:3000", "10.0.0.5"))
    await rule.check(httpx2.URL("http://10.0.0.5:99/"))
    await rule.check(httpx2.URL("http://localhost:3000/"))
    with pytest.raises(Refused, match="'localhost:3001' to security"):
        await rule.check(httpx2.URL("https://localhost:3001/"))


@dataclass
class Resolver:
    """A name server of an attacker's: each name has another address each time, the last one from then on."""

    names: dict[str, list[str]]
    asked: list[str] = field(default_factory=list[str])

    def __call__(self, host: str | bytes | None, port: Any, *args: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else str(host)
        if name not in self.names:
            return LOOK_UP(host, port, *args, **options)
        self.asked.append(name)
        answers = self.names[name]
        address = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, int(port)))]


LOOK_UP = socket.getaddrinfo


def resolved_by(monkeypatch: pytest.MonkeyPatch, **names: list[str]) -> Resolver:
    """Have names looked up by a resolver that knows *names*, written with ``_`` for the dot."""
    resolver = Resolver({name.replace("_", "."): addresses for name, addresses in names.items()})
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    return resolver


async def test_the_address_that_was_judged_is_the_one_that_is_connected(monkeypatch: pytest.MonkeyPatch):
    connected: list[str] = []

    async def connect(self: Any, host: str, *args: Any) -> Any:
        connected.append(host)
        raise httpcore2.ConnectError("not in a test")

    resolver = resolved_by(monkeypatch, rebind_test=["203.0.114.7", "127.0.0.1"])
    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    for rule in (AddressRule(("http://rebind.test/",), by_user=False), AddressRule(("http://other.test/",))):
        resolver.names["rebind.test"] = ["203.0.114.7", "127.0.0.1"]
        async with GuardedClient(rule) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get("http://rebind.test/")
            with pytest.raises(Refused, match=r"rebind\.test has the internal address 127\.0\.0\.1"):
                await client.get("http://rebind.test/")
    assert connected == ["203.0.114.7"] * 2, "no connection was made to what nobody had judged"


async def test_a_name_with_a_public_and_an_internal_address_is_refused(monkeypatch: pytest.MonkeyPatch):
    both = [(2, 1, 6, "", ("203.0.114.7", 80)), (2, 1, 6, "", ("10.0.0.1", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **options: both)
    with pytest.raises(Refused, match=r"internal address 10\.0\.0\.1"):
        await AddressRule(("http://mcp.example/",)).check(httpx2.URL("http://both.test/"))


NAMED = {
    # What the user wrote, what somebody else named, and whether that is connected.
    ("http://localhost:1/mcp", "http://localhost:1/other"): True,
    ("http://localhost:1/mcp", "http://localhost:2/token"): True,
    ("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/token"): True,
    ("http://mcp:1/mcp", "http://mcp:2/token"): True,
    ("http://127.0.0.1:1/mcp", "http://localhost:2/token"): False,
    ("http://127.0.0.1:1/mcp", "http://127.0.0.2:1/token"): False,
    ("https://inside.test/mcp", "https://inside.test:8443/token"): True,
    ("https://inside.test/mcp", "http://inside.test/token"): False,
    ("http://inside.test/mcp", "http://inside.test:8080/token"): False,
    ("https://inside.test/mcp", "https://login.inside.test/token"): False,
    ("https://open.test/mcp", "https://login.open.test/token"): True,
    ("https://open.test/mcp", "http://login.open.test/token"): False,
    ("http://open.test/mcp", "http://login.open.test/token"): True,
    ("https://open.test/mcp", "https://127.0.0.1/token"): False,
    ("https://open.test/mcp", "http://169.254.169.254/latest/meta-data"): False,
    ("http://open.test/mcp", "http://169.254.169.254/latest/meta-data"): False,
    ("https://open.test/mcp", "https://google.test@login.open.test/token"): False,
    ("https://open.test/mcp", "https://google.test@open.test/token"): False,
    ("https://me:pw@open.test/mcp", "https://me:pw@open.test/token"): True,
    ("https://me:pw@open.test/mcp", "https://open.test/token"): True,
}


@pytest.mark.parametrize(("written", "named"), NAMED)
async def test_an_address_that_the_user_did_not_write_is_public_or_at_home(
    written: str, named: str, monkeypatch: pytest.MonkeyPatch
):
    inside, outside = ["10.1.1.1"], ["203.0.114.7"]
    names = {"inside_test": inside, "login_inside_test": inside, "open_test": outside, "login_open_test": outside}
    resolved_by(monkeypatch, **names)
    try:
        await AddressRule((written,)).check(httpx2.URL(named))
    except Refused as error:
        assert not NAMED[written, named], error
        assert "nothing was sent" in str(error)
    else:
        assert NAMED[written, named]


def test_what_a_project_wrote_is_not_what_the_user_wrote(tmp_path: Path):
    server = Server(url="http://localhost:3000/mcp", auth=OAuthSettings(port=8123))
    paths = Paths(tmp_path, None, tmp_path / "global")
    mine = resolve_spec("s", server, Secrets(), paths, internal_hosts=("a",))
    projects = resolve_spec("s", server, Secrets(), paths, tmp_path / ".onetool", internal_hosts=("a",))
    assert mine.key != projects.key
    for spec, by_user in ((mine, True), (projects, False)):
        assert spec.account
        assert AddressRule(*spec.rule) == AddressRule((server.url,), ("a",), by_user)
        assert AddressRule(*spec.account.rule) == AddressRule((server.url,), ("a",), by_user)


class Signing(httpx2.Auth):
    """Signs requests, or fails while it does."""

    fault: Exception | None = None

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self.fault:
            raise self.fault
        request.headers["Authorization"] = "Bearer token"
        yield request


def buying(what: str) -> dict[str, Any]:
    """Return a call."""
    params = {"name": "buy", "arguments": {"what": what}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


@pytest.mark.parametrize("fault", [Refused("log in first"), CannotAsk("log in first"), OSError("log in first")])
async def test_what_goes_wrong_while_a_request_is_signed_is_that_requests_alone(fault: Exception):
    signing, trace = Signing(), CallTrace()
    async with raw_server() as (url, raw), ServerClient(http_spec(url), signing) as client:
        current_trace.set(trace)
        signing.fault = fault
        refused = await client.post(url, json=buying("tea"))
        assert "log in first" in refused.json()["error"]["message"]
        assert (trace.fault, trace.sent, raw.seen) == (fault, False, [])
        signing.fault = None
        assert (await client.post(url, json=buying("milk"))).json()["id"] == 7
        assert raw.calls()[0].headers["authorization"] == "Bearer token"
        assert (trace.fault, trace.sent, raw.effects) == (None, True, ["milk"])


async def test_an_error_of_who_signs_reaches_the_program_as_it_is():
    live = LiveSession(http_spec("http://127.0.0.1:9/mcp"), StrayOutput("s"), lambda: None, "auto", ClientRoots())
    wanted = CannotAsk("log in first")
    assert call_failure(RuntimeError(), "web.buy", CallTrace(fault=wanted, sent=True), live) is wanted
    found = call_failure(RuntimeError(), "web.buy", CallTrace(fault=Refused("log in first"), sent=True), live)
    assert isinstance(found, ServerUnavailable)
    assert not found.unknown


@pytest.mark.parametrize("sent", [True, False])
async def test_a_secret_where_a_long_failure_is_cut_leaves_no_part_of_itself(sent: bool):
    secret = "hush-0123456789-abcdefghij-0123456789"
    spec = http_spec("http://127.0.0.1:9/mcp", secrets=(("KEY", secret),))
    live = LiveSession(spec, StrayOutput("s"), lambda: None, "auto", ClientRoots())
    fault = OSError("x" * (MAX_TEXT - 20) + secret + "y" * MAX_TEXT)
    found = call_failure(RuntimeError(), "web.buy", CallTrace(fault=fault, sent=sent), live)
    assert isinstance(found, ServerUnavailable | Lost)
    assert "hush" not in found.why
    assert MAX_TEXT / 2 < len(found.why) <= MAX_TEXT


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
