"""How the pack ``web`` connects: names that change, certificates, proxies of the environment."""

from __future__ import annotations

import asyncio
import importlib
import ssl
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

import ot_tools
from web_bed import web
from web_site import Served, WebSite

pytestmark = pytest.mark.anyio

SOURCES = Path(ot_tools.__file__).parent / "in_workers" / "web"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer's own proxy has no part in this."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


# ---------------------------------------------------------------- names


@pytest.fixture
def requests_module(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """The pack's file that connects, in this process: a test cannot change what a name means elsewhere."""
    monkeypatch.syspath_prepend(str(SOURCES.parent / "_shared"))
    monkeypatch.syspath_prepend(str(SOURCES))
    yield importlib.import_module("web_requests")
    del sys.modules["web_requests"]


def answers(monkeypatch: pytest.MonkeyPatch, *lookups: list[str]) -> list[str]:
    """Let the names of this process have these addresses, at each lookup others; return those that are looked up."""
    asked: list[str] = []

    async def look_up(self: object, host: str, port: int, **options: Any) -> list[Any]:
        found = [host] if host[:1].isdigit() else lookups[len(asked)]
        if found != [host]:
            asked.append(host)
        return [(2, 1, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", look_up)
    return asked


async def fetched(requests_module: Any, url: str, *allowed: str) -> bytes:
    rule = requests_module.PlaceRule(allowed)
    requests = requests_module.Requests(rule, "Test/1", 1000)
    try:
        return (await requests.send("GET", rule.check_url(url), {})).body
    finally:
        for transport in requests._transports.values():
            await transport.aclose()


async def test_a_name_is_looked_up_once_and_what_was_judged_is_connected(
    requests_module: Any, monkeypatch: pytest.MonkeyPatch
):
    with (
        WebSite({"/": Served(b"judged")}) as judged,
        WebSite({"/": Served(b"other")}, "127.0.0.2", judged.port) as other,
    ):
        asked = answers(monkeypatch, ["127.0.0.1"], ["127.0.0.2"])
        url = f"http://rebound.example:{judged.port}/"
        assert await fetched(requests_module, url, f"rebound.example:{judged.port}") == b"judged"
        assert (asked, other.asked) == (["rebound.example"], [])
        assert judged.asked[0].headers["host"] == f"rebound.example:{judged.port}"


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(["127.0.0.1"], id="loopback alone"),
        pytest.param(["8.8.8.8", "127.0.0.1"], id="a public address first"),
        pytest.param(["127.0.0.1", "8.8.8.8"], id="a public address second"),
        pytest.param(["::ffff:127.0.0.1"], id="loopback mapped into IPv6"),
        pytest.param(["fe80::1%1"], id="a link-local address with a zone"),
    ],
)
async def test_a_public_name_with_an_internal_address_is_refused(
    requests_module: Any, monkeypatch: pytest.MonkeyPatch, addresses: list[str]
):
    with WebSite({"/": Served(b"secret")}) as site:
        answers(monkeypatch, addresses)
        with pytest.raises(PermissionError, match=r"rebound\.example has the internal address .+; nothing was sent"):
            await fetched(requests_module, f"http://rebound.example:{site.port}/")
        assert site.asked == []


# ---------------------------------------------------------------- certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that nobody trusts, and its key, in one file."""
    place = tmp_path_factory.mktemp("certificate")
    new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    words = [*new.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(["openssl", *words], cwd=place, check=True, capture_output=True)
    (place / "both.pem").write_text((place / "cert.pem").read_text() + (place / "key.pem").read_text())
    return place / "both.pem"


async def test_a_certificate_must_be_trusted_and_for_the_name_that_was_asked(
    tmp_path: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    for name in ("trusting", "not"):
        (tmp_path / name).mkdir()
    with WebSite({"/": Served(b"over TLS", "text/plain")}) as site:
        site.socket = context.wrap_socket(site.socket, server_side=True)
        named, numbered = f"https://localhost:{site.port}/", f"https://127.0.0.1:{site.port}/"
        settings: Any = {"internal_hosts": ["localhost", "127.0.0.1"]}
        async with web(tmp_path / "not", **settings) as app:
            assert "certificate verify failed" in (await app.error("web.fetch(url=url)", url=named)).lower()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with web(tmp_path / "trusting", **settings) as app:
            assert await app.value("web.fetch(url=url)", url=named) == "over TLS"
            assert "certificate verify failed" in (await app.error("web.fetch(url=url)", url=numbered)).lower()


# ---------------------------------------------------------------- proxies


async def test_a_proxy_gets_names_that_are_unknown_here_and_no_internal_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Proxy(WebSite):
        """Answers whatever it is asked to fetch."""

    page = Served(b"by proxy", "text/plain")
    with (
        Proxy({"http://only-the-proxy.invalid/page": page}) as proxy,
        WebSite({"/": Served(b"secret")}) as site,
        WebSite({"/": Served(b"direct", "text/plain")}) as own,
    ):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "localhost")
        async with web(tmp_path, robots=False, internal_hosts=[f"localhost:{own.port}"]) as app:
            assert await app.value("web.fetch(url='http://only-the-proxy.invalid/page')") == "by proxy"
            before = len(proxy.asked)
            assert await app.value("web.fetch(url=url)", url=f"http://localhost:{own.port}/") == "direct"
            hosts = ("127.0.0.1", "2130706433", "[::1]", "169.254.169.254", "localhost")
            urls = [f"http://{host}:{site.port}/" for host in hosts]
            pages = await app.value("web.fetch_many(urls=urls)", urls=urls)
    assert ["internal address" in page["error"] for page in pages] == [True] * len(urls)
    assert (len(proxy.asked), site.asked) == (before, [])


async def test_a_proxy_that_cannot_be_used_is_said_to_be_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTP_PROXY", "ftp://proxy.example")
    async with web(tmp_path, robots=False) as app:
        error = await app.error("web.fetch(url='http://only-the-proxy.invalid/')")
    assert "the proxy that the environment names cannot be used" in error
