"""The pack web: what it does on the network, and how it reads what came."""

from __future__ import annotations

import asyncio
import gzip
import importlib
import os
import ssl
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ot.build import IN_WORKERS
from pace import PATIENCE
from web_bed import web
from web_site import Served, WebSite

pytestmark = pytest.mark.anyio

SOURCES = IN_WORKERS / "web"
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


MODULES = ("gzip_body", "web_requests", "web_cache", "web_reading", "web_reader_processes", "web_fetcher")
MEGABYTE = 1 << 20


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Generator[Any]:
    """The pack's own modules."""
    monkeypatch.syspath_prepend(str(SOURCES.parent / "_shared"))
    monkeypatch.syspath_prepend(str(SOURCES))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    for name in MODULES:
        del sys.modules[name]


def answer(parts: Any, url: str, body: bytes) -> Any:
    return parts.web_requests.WebAnswer(url, 200, "OK", {"content-type": "text/plain"}, body)


# ---------------------------------------------------------------- copies


def test_copies_take_no_more_room_than_they_may(parts: Any, tmp_path: Path):
    cache = parts.web_cache.PageCache(tmp_path / "web", MEGABYTE, ())
    for number in range(60):
        cache.put(answer(parts, f"http://a.example/{number}", os.urandom(100_000)))
        cache.get("http://a.example/0")
    cache.put(answer(parts, "http://a.example/large", os.urandom(MEGABYTE // 2)))
    found = [number for number in range(60) if cache.get(f"http://a.example/{number}")]
    assert 59 in found and 0 in found and 2 < len(found) < 11
    assert cache.get("http://a.example/large") is None
    assert (tmp_path / "web" / "pages.sqlite").stat().st_size < 2 * MEGABYTE


def test_a_damaged_file_of_copies_is_made_anew(parts: Any, tmp_path: Path):
    (tmp_path / "web").mkdir(mode=0o700)
    (tmp_path / "web" / "pages.sqlite").write_bytes(b"no database" * 500)
    cache = parts.web_cache.PageCache(tmp_path / "web", MEGABYTE, ())
    cache.put(answer(parts, "http://a.example/", b"kept"))
    assert cache.get("http://a.example/").answer.body == b"kept"


@pytest.mark.parametrize("wrong", ["open to others", "a link"])
def test_a_place_for_copies_that_others_could_use_is_refused(parts: Any, tmp_path: Path, wrong: str):
    (tmp_path / "web").mkdir(mode=0o700)
    if wrong == "a link":
        (tmp_path / "target").write_bytes(b"mine")
        (tmp_path / "web" / "pages.sqlite").symlink_to(tmp_path / "target")
    else:
        (tmp_path / "web").chmod(0o777)
    with pytest.raises(PermissionError):
        parts.web_cache.PageCache(tmp_path / "web", MEGABYTE, ())
    assert wrong != "a link" or (tmp_path / "target").read_bytes() == b"mine"


# ---------------------------------------------------------------- archives


def test_an_archive_is_unpacked_to_its_limit_and_one_byte_more(parts: Any):
    body = parts.gzip_body.GzipBody(1000)
    bomb = gzip.compress(bytes(MEGABYTE))
    assert len(body.add(bomb[:500])) == 1001
    assert body.add(bomb[500:]) == b""


# ---------------------------------------------------------------- readers


async def read(readers: Any, body: bytes = b"[1]") -> Any:
    return (await readers.read("json", body, type="application/json", charset=""))["content"]


async def test_a_reader_that_dies_is_an_error_of_its_page_alone(parts: Any):
    readers = parts.web_reader_processes.Readers(PATIENCE)
    assert await read(readers) == [1]
    (reader,) = readers._idle
    reading = asyncio.create_task(read(readers, b"[" + b"[1,2]," * 1_000_000 + b"3]"))
    await asyncio.sleep(0)  # it has its reader now, and has sent nothing of substance
    assert readers._idle == []
    reader.end()
    with pytest.raises(ValueError, match="it made the parser crash"):
        await reading
    assert await read(readers) == [1]
    readers._idle[0].end()
    await readers._idle[0]._process.wait()
    assert await read(readers) == [1]  # one that died while it was idle is nobody's error
    readers._idle[0].end()
    await readers._idle[0]._process.wait()


async def test_a_reader_has_so_much_memory_and_no_more(parts: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts.web_reader_processes, "MEGABYTES", 150)
    readers = parts.web_reader_processes.Readers(PATIENCE)
    with pytest.raises(ValueError, match=r"it is too large or too deep to be read \(MemoryError\)"):
        await read(readers, b"[" + b"{}," * 3_000_000 + b"{}]")
    assert await read(readers) == [1]
    readers._idle[0].end()
    await readers._idle[0]._process.wait()


async def test_a_reader_that_is_not_needed_ends(parts: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parts.web_reader_processes, "IDLE_SECONDS", 0.01)
    readers = parts.web_reader_processes.Readers(PATIENCE)
    assert await read(readers) == [1]
    (reader,) = readers._idle
    async with asyncio.timeout(PATIENCE):
        await reader._process.wait()
    assert readers._idle == []


# ---------------------------------------------------------------- sites


@pytest.fixture
def fetcher(parts: Any) -> Any:
    """A fetcher that asks nobody."""
    limits = SimpleNamespace(
        internal_hosts=(), user_agent="Test/1", max_bytes=1000, read_seconds=1.0, concurrency=1, per_host=1, robots=True
    )
    return parts.web_fetcher.Fetcher(limits, None)


async def test_no_more_sites_are_remembered_than_fit(parts: Any, fetcher: Any):
    for number in range(parts.web_fetcher.MAX_SITES + 9):
        fetcher._site(fetcher._rule.check_url(f"http://{number}.example/"))
    assert len(fetcher._sites) == parts.web_fetcher.MAX_SITES


async def test_a_site_cannot_make_its_users_wait_for_ever(parts: Any, fetcher: Any, monkeypatch: pytest.MonkeyPatch):
    async def rules(*_: object) -> bytes:
        return b"Crawl-delay: 1000000"

    async def delay(*_: object, **asked: object) -> Any:
        return {"content": {"allowed": True, "delay": 1_000_000.0}}

    monkeypatch.setattr(fetcher, "_robots", rules)
    monkeypatch.setattr(fetcher._readers, "read", delay)
    place = fetcher._rule.check_url("http://a.example/")
    await fetcher._check_robots(place, None)
    assert fetcher._site(place).delay == parts.web_fetcher.MAX_DELAY
