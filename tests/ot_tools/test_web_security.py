"""What the pack ``web`` is asked for by programs and sent by servers that mean harm: refused, or harmless."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Any

import pytest

from web_bed import Web, web
from web_site import Raw, Served, WebSite, drip, endless, raw, redirect, zipped

pytestmark = pytest.mark.anyio

SECRET = "the key of the house"
MAX_BYTES = 300_000
MAX_REDIRECTS = 3
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
XHTML = "application/xhtml+xml"
INTERNAL, NO_ADDRESS, NOTHING_SENT = "internal address", "is not an address", "nothing was sent"
NOT_HTTP = "is not an address that starts with http"

INNER = {"/": Served(SECRET.encode()), "/robots.txt": Served(SECRET.encode())}
BOMB = b"0" * 50_000_000
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 20}">' for n in range(1, 12))

ADDRESSES = {
    "another port of an allowed host": "http://127.0.0.1:{inner}/",
    "a name that means loopback": "http://localhost:{inner}/",
    "a name in capitals": "http://LOCALHOST:{inner}/",
    "a short form": "http://127.1:{inner}/",
    "a decimal number": "http://2130706433:{inner}/",
    "a hexadecimal number": "http://0x7f000001:{inner}/",
    "hexadecimal parts": "http://0x7f.0.0.0x1:{inner}/",
    "another address of the loopback network": "http://127.8.8.8:{inner}/",
    "the address of no host": "http://0.0.0.0:{inner}/",
    "IPv6 loopback": "http://[::1]:{inner}/",
    "IPv6 loopback in full": "http://[0:0:0:0:0:0:0:1]:{inner}/",
    "the IPv6 address of no host": "http://[::]:{inner}/",
    "loopback mapped into IPv6": "http://[::ffff:127.0.0.1]:{inner}/",
    "loopback mapped into IPv6 in hexadecimal": "http://[::ffff:7f00:1]:{inner}/",
    "an IPv6 address compatible with loopback": "http://[::127.0.0.1]:{inner}/",
    "loopback translated by NAT64": "http://[64:ff9b::7f00:1]:{inner}/",
    "loopback translated by a local NAT64": "http://[64:ff9b:1::7f00:1]:{inner}/",
    "loopback in 6to4": "http://[2002:7f00:1::]:{inner}/",
    "loopback in Teredo": "http://[2001:0:7f00:1::]:{inner}/",
    "a cloud's metadata": "http://169.254.169.254/latest/meta-data/",
    "a cloud's metadata over IPv6": "http://[fd00:ec2::254]/",
    "a cloud's metadata in the shared network": "http://100.100.100.200/",
    "a cloud's metadata among protocol addresses": "http://192.0.0.192/",
    "a cloud's own service at a public address": "http://168.63.129.16/",
    "a private network of class A": "http://10.0.0.1/",
    "a private network of class B": "http://172.16.0.1/",
    "a private network of class C": "http://192.168.1.1/",
    "a provider's shared network": "http://100.64.0.1/",
    "a multicast address": "http://224.0.0.1/",
    "the broadcast address": "http://255.255.255.255/",
    "an IPv6 multicast address": "http://[ff02::1]/",
    "a link-local address": "http://[fe80::1]/",
    "a site-local address": "http://[fec0::1]/",
    "a unique local address": "http://[fc00::1]/",
}

REFUSED_FORMS = {
    "a local file": ("file:///etc/passwd", NOT_HTTP),
    "another protocol": ("gopher://127.0.0.1:{inner}/_x", NOT_HTTP),
    "data in the address": ("data:text/html,<p>x", NOT_HTTP),
    "a script": ("javascript:alert(1)", NOT_HTTP),
    "no protocol": ("//127.0.0.1:{inner}/", NOT_HTTP),
    "no host": ("http:///secret", NOT_HTTP),
    "an allowed host as the user's name": ("http://127.0.0.1:{site}@127.0.0.1:{inner}/", "user name or password"),
    "a password": ("http://u:p@127.0.0.1:{site}/", "user name or password"),
    "a host behind a backslash": ("http://127.0.0.1:{site}\\@127.0.0.1:{inner}/", ""),
    "a tab in the host": ("http://127.0.0.\t1:{inner}/", NO_ADDRESS),
    "a line break that would add a header": ("http://127.0.0.1:{site}/\r\nX-Injected: 1", NO_ADDRESS),
    "digits of another script": ("http://\uff11\uff12\uff17.\uff10.\uff10.\uff11:{inner}/", ""),
    "full stops of another script": ("http://127\u30020\u30020\u30021:{inner}/", ""),
    "a host in percent signs": ("http://%31%32%37.0.0.1:{inner}/", ""),
    "an address with a zone": ("http://[fe80::1%25lo]:{inner}/", ""),
    "the port of mail": ("http://127.0.0.1:25/", "port 25 of 127.0.0.1 is not one of web servers"),
    "the port of a login": ("http://example.com:22/", "port 22 of example.com is not one of web servers"),
    "a port that cannot be": ("http://127.0.0.1:99999/", NOTHING_SENT),
    "a name with a dot at its end": ("http://localhost.:{inner}/", ""),
    "octal parts": ("http://0177.0.0.1:{inner}/", ""),
    "an address of many thousand characters": ("http://127.0.0.1:{site}/" + "a" * 9000, "too long"),
}

REDIRECTS = {
    "to another port of the host": ("http://127.0.0.1:{inner}/", INTERNAL),
    "to loopback by name": ("http://localhost:{inner}/", INTERNAL),
    "to loopback as a decimal number": ("http://2130706433:{inner}/", INTERNAL),
    "to loopback over IPv6": ("http://[::1]:{inner}/", INTERNAL),
    "to a cloud's metadata": ("http://169.254.169.254/", INTERNAL),
    "without a protocol": ("//localhost:{inner}/", INTERNAL),
    "to a local file": ("file:///etc/passwd", NOT_HTTP),
    "with a password": ("http://u:p@127.0.0.1:{site}/ok", "user name or password"),
    "to the port of mail": ("http://127.0.0.1:25/", NOTHING_SENT),
    "to a chain that ends at loopback": ("/to/to loopback by name", INTERNAL),
    "to itself, for ever": ("/to/to itself, for ever", "redirects more than 3 times"),
    "to what is not an address": ("http://[::1", NO_ADDRESS),
}


@dataclass(frozen=True)
class Hostile:
    """What a server sends, and what a program sees of it."""

    page: Served | Raw
    said: str = ""
    """Words of the error; without them it is no error."""
    format: str = "text"
    content: Any = None
    """The content, where it is known."""


TOO_LARGE = f"is larger than {MAX_BYTES:,} bytes"
HOSTILE = {
    "a bomb": Hostile(zipped(BOMB), TOO_LARGE),
    "a bomb in a bomb": Hostile(zipped(BOMB, "gzip, gzip"), "which was not asked for"),
    "an encoding that was not asked for": Hostile(Served(b"x", headers={"Content-Encoding": "br"}), "was not asked"),
    "a damaged archive": Hostile(Served(b"not gzip", headers={"Content-Encoding": "gzip"}), "cannot be unpacked"),
    "half an archive": Hostile(
        Served(gzip.compress(b"x" * 999)[:-9], headers={"Content-Encoding": "gzip"}), "it ends too early"
    ),
    "an archive, and then something else": Hostile(
        Served(gzip.compress(b"x") + b"junk", headers={"Content-Encoding": "gzip"}), "cannot be unpacked"
    ),
    "half of a second archive": Hostile(
        Served(gzip.compress(b"x") + gzip.compress(b"y" * 999)[:-9], headers={"Content-Encoding": "gzip"}),
        "it ends too early",
    ),
    "a bomb after an archive": Hostile(
        Served(gzip.compress(b"x") + gzip.compress(BOMB), headers={"Content-Encoding": "gzip"}), TOO_LARGE
    ),
    "a part that nobody asked for": Hostile(Served(b"<p>part", status=206), "answered 206 Partial Content"),
    "a body without end": Hostile(endless(OK + b"\r\n"), TOO_LARGE),
    "an archive of nothing without end": Hostile(
        endless(OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"")[:10], b"\0\0\0\xff\xff"), TOO_LARGE
    ),
    "chunks without end": Hostile(endless(OK + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n"), TOO_LARGE),
    "a length of terabytes": Hostile(raw(OK + b"Content-Length: 9999999999999\r\n\r\n"), TOO_LARGE),
    "a malformed length": Hostile(raw(OK + b"Content-Length: many\r\n\r\n"), "could not be fetched"),
    "less than its length": Hostile(raw(OK + b"Content-Length: 99\r\n\r\nx"), "could not be fetched"),
    "headers without end": Hostile(endless(OK + b"X-Long: "), "could not be fetched"),
    "no HTTP at all": Hostile(raw(b"SSH-2.0-OpenSSH\r\n\r\n"), "could not be fetched"),
    "elements in elements": Hostile(Served(b"<div>" * 50_000 + b"deep"), "nested too deeply"),
    "tables in tables": Hostile(Served(b"<table><tr><td>" * 15_000), "nested too deeply", "markdown"),
    "an element with very many attributes": Hostile(Served(b"<p " + b"a=1 " * 60_000 + b">many")),
    "lists of lists in JSON": Hostile(Served(b"[" * 100_000, "application/json"), "nested too deeply", "json"),
    "no JSON": Hostile(Served(b"<p>x", "text/html"), "it is not JSON (it is text/html)", "json"),
    "a number that JSON does not know": Hostile(Served(b"[NaN]", "application/json"), "NaN is not valid JSON", "json"),
    "a number of a hundred thousand digits": Hostile(Served(b"1" * 100_000, "application/json"), "not JSON", "json"),
    "a charset that unpacks": Hostile(
        Served(b"<p>plain words here", "text/html; charset=zip"), content="plain words here"
    ),
    "a charset that is slow": Hostile(
        Served(b"words-" + b"a" * 200_000, "text/plain; charset=punycode"), content="words-" + "a" * 200_000
    ),
    "a charset that turns text into other text": Hostile(
        Served(b"C:\\new +AGE-", "text/plain; charset=unicode_escape"), content="C:\\new +AGE-"
    ),
    "a charset of mail": Hostile(Served(b"+AGE-", "text/plain; charset=utf-7"), content="+AGE-"),
    "a charset that is unknown": Hostile(
        Served("\u00e9t\u00e9".encode(), "text/plain; charset=x-\x7f"), content="\u00e9t\u00e9"
    ),
    "an image instead of a page": Hostile(Served(b"\x89PNG\r\n\x1a\n\0\0", "image/png"), "which is not text"),
    "data that calls itself nothing": Hostile(Served(b"\x7fELF\0\0\0", None), "which is not text"),
    "a page that moves by itself to a secret": Hostile(
        Served(b'<meta http-equiv="refresh" content="0;url=http://localhost:{inner}/"><p>stay here', "text/html"),
        content="stay here",
    ),
    "a page that embeds a secret": Hostile(
        Served(b'<iframe src="http://localhost:{inner}/"></iframe><p>stay here<img src="http://localhost:{inner}/">'),
        content="stay here",
    ),
    "an entity that is a file": Hostile(
        Served(
            b'<!DOCTYPE p [<!ENTITY x SYSTEM "file:///etc/passwd">]><html><body><p>[&x;] in it</p></body></html>',
            "application/xhtml+xml",
        )
    ),
    "entities of entities": Hostile(Served(f"<!DOCTYPE p [{LAUGHS}]><html><p>&l11; in it</p></html>".encode(), XHTML)),
}

SLOW = {
    "a body by drips": drip(OK + b"Content-Length: 9999\r\n\r\n"),
    "headers by drips": drip(OK + b"X-Slow: "),
    "a first line by drips": drip(b"HTTP/1.1 200 "),
    "a chunk by drips": drip(OK + b"Transfer-Encoding: chunked\r\n\r\nffff\r\n"),
}
SECONDS = 2.0


@pytest.fixture(scope="module")
def inner() -> Generator[WebSite]:
    """A site that no program may see."""
    with WebSite(INNER) as site:
        yield site


@pytest.fixture(scope="module")
def site(inner: WebSite) -> Generator[WebSite]:
    """A site that programs may see."""
    with WebSite({"/ok": Served(b"<p>fine")}) as site:
        for name, (to, _) in REDIRECTS.items():
            site.pages[f"/to/{name}"] = redirect(to.format(inner=inner.port, site=site.port))
        for name, hostile in HOSTILE.items():
            site.pages[f"/{name}"] = hostile.page
        for name, page in SLOW.items():
            site.pages[f"/{name}"] = page
        yield site


@pytest.fixture(scope="module")
async def web_app(tmp_path_factory: pytest.TempPathFactory, site: WebSite) -> AsyncGenerator[Web]:
    """The pack, in one worker for all cases."""
    directory = tmp_path_factory.mktemp("web")
    async with web(directory, site, max_bytes=MAX_BYTES, redirects=MAX_REDIRECTS, robots=False) as app:
        yield app


@pytest.fixture(autouse=True)
def secret_stays(inner: WebSite) -> Generator[None]:
    """In no case is the inner site asked for anything."""
    yield
    assert inner.asked == []


@pytest.mark.parametrize("address", ADDRESSES.values(), ids=ADDRESSES.keys())
async def test_an_internal_address_is_refused_before_anything_is_sent(web_app: Web, inner: WebSite, address: str):
    error = await web_app.error("web.fetch(url=url)", url=address.format(inner=inner.port))
    assert "PermissionError" in error and INTERNAL in error and NOTHING_SENT in error
    assert "to tools.web.internal_hosts in your own configuration" in error


@pytest.mark.parametrize(("form", "said"), REFUSED_FORMS.values(), ids=REFUSED_FORMS.keys())
async def test_an_address_of_another_form_is_refused(web_app: Web, inner: WebSite, site: WebSite, form: str, said: str):
    asked = len(site.asked)
    error = await web_app.error("web.fetch(url=url)", url=form.format(inner=inner.port, site=site.port))
    assert said in error and SECRET not in error
    assert len(site.asked) == asked


@pytest.mark.parametrize("tool", ["fetch", "links", "tables", "check"])
@pytest.mark.parametrize("name", REDIRECTS)
async def test_a_redirect_is_looked_at_like_an_address(web_app: Web, site: WebSite, tool: str, name: str):
    url, before = f"{site.url}/to/{name}", len(site.asked)
    if tool == "check":
        (found,) = await web_app.value("web.check(urls=[url])", url=url)
        assert (found["ok"], found["status"]) == (False, 0)
        error = found["error"]
    else:
        error = await web_app.error(f"web.{tool}(url=url)", url=url)
    assert REDIRECTS[name][1] in error and SECRET not in error
    assert len(site.asked) - before <= 1 + MAX_REDIRECTS


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_answer_is_refused_or_harmless(web_app: Web, site: WebSite, name: str):
    hostile, url = HOSTILE[name], f"{site.url}/{name}"
    program = "web.fetch_many(urls=[url], format=format)[0]"
    page = await web_app.value(program, url=url, format=hostile.format)
    assert hostile.said in page["error"] and page["ok"] == (not hostile.said), page
    assert "root:" not in str(page["content"]) and len(str(page["content"])) <= MAX_BYTES
    if hostile.content is not None:
        assert page["content"] == hostile.content
    assert await web_app.value("web.fetch(url=url)", url=f"{site.url}/ok") == "fine"


@pytest.fixture(scope="module")
async def slow_pages(tmp_path_factory: pytest.TempPathFactory, site: WebSite) -> dict[str, Any]:
    """What comes of all slow pages at once, and of one that is not."""
    urls = [f"{site.url}/{name}" for name in ("ok", *SLOW)]
    async with web(tmp_path_factory.mktemp("slow"), site, seconds=SECONDS, robots=False, per_host=8) as app:
        pages = await app.value("web.fetch_many(urls=urls, cache=False)", urls=urls)
    return dict(zip(("ok", *SLOW), pages, strict=True))


@pytest.mark.parametrize("name", SLOW)
async def test_a_slow_answer_has_its_time_and_no_more(slow_pages: dict[str, Any], name: str):
    assert f"was not complete within {SECONDS:g} s" in slow_pages[name]["error"]
    assert slow_pages["ok"]["content"] == "fine"
