"""The bundled pack ``web``: pages of a real server on loopback, fetched by programs."""

from __future__ import annotations

import ast
import gzip
import re
import threading
import time
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from ot.build import IN_WORKERS
from pace import PATIENCE
from web_bed import Web, web
from web_site import Handler, Served, WebSite, drip, redirect, zipped

pytestmark = pytest.mark.anyio

SOURCE = IN_WORKERS / "web" / "web_tools.py"
TOOLS = ["check", "fetch", "fetch_many", "links", "tables"]
HOME = """<html><head><title>Our
 house</title><style>p { color: red }</style></head><body>
<main><h2>Rooms</h2><p>The house has <a href="/rooms">four rooms</a> and a <b>garden</b>.</p>
<ul><li>kitchen</li><li>hall</li></ul></main>
<p><a href="rooms#top">again</a> <a href="mailto:a@b.example">mail</a> <a href="https://other.example/docs/">out</a></p>
</body></html>"""
PRICES = """<table><caption>Prices</caption><thead><tr><th>Fruit</th><th>Price</th></tr></thead>
<tbody><tr><td>apple</td><td> 1.20 </td></tr><tr><td colspan="2">sold out</td></tr></tbody></table>
<table><tr><td>x</table>"""
LIST = """<html><body><nav><a href="/">Home</a></nav><main><h1>Books</h1><p>These are the books of the first page, in
the order of their titles: <a href="/books/a">A</a> and <a href="/books/b">B</a>, which are the ones to read.</p></main>
<footer><a rel="nofollow next" href="?page=2">More</a></footer></body></html>"""
LONG_ENOUGH = 0.2
CACHED = {"Cache-Control": "max-age=3600"}

SPANS = """<table><tr><th>A<th>B<th>C<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td rowspan=9>5<tr><td>6</table>
<table><tr><th>a<th>a 3<th>a<th><tr><td>1<td>2<td>3<td>4</table>
<table><tr><th>x<th>y<tr><td colspan={}>1<td>2</table>"""
DEEP = b"<p>first words</p>" + b"<div>" * 1500 + b"<p>deep words</p>" + b"</div>" * 1500 + b"<p>last words</p>"


def no_head(handler: Handler) -> None:
    """Hang up at a HEAD."""
    if handler.command == "GET":
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")


PAGES = {
    "/": Served(HOME.encode()),
    "/gone": Served(b"gone", status=410),
    "/prices": Served(PRICES.encode()),
    "/moved": redirect("/"),
    "/data.json": Served(b'{"version": 2, "names": ["a", "b"]}', "application/json"),
    "/notes.txt": Served(b"one\ntwo\n", "text/plain"),
    "/logo.png": Served(b"\x89PNG\r\n\x1a\n\0", "image/png"),
    "/zipped": zipped(HOME.encode()),
    "/empty": Served(b""),
    "/spans": Served(SPANS.format("9" * 5000).encode()),
    "/cells": Served(b"<table><tr><th>x" + b"<tr><td colspan=1000>x" * 101),
    "/deep": Served(DEEP),
    "/archives": Served(
        gzip.compress(b"one ") + gzip.compress(b"two"), "text/plain", headers={"Content-Encoding": "gzip"}
    ),
    "/choices": Served(b"choose", status=300),
    "/busy": Served(b"later", status=503, headers={"Retry-After": "7"}),
    "/busier": Served(b"later", status=503, headers={"Retry-After": "\xb2"}),
    "/list": Served(LIST.encode()),
    "/links": Served(
        b"".join(b"<a href=/%d>x</a>" % number for number in range(10_001)) + b"<base href='http://[bad'>"
    ),
    "/binary": Served(b"\x1f\x8b\x08\0\xff", "text/plain"),
    "/private": Served(b"<p>private words"),
    "/robots.txt": Served(b"User-agent: *\nDisallow: /private\n", "text/plain"),
}
WORDS = "\u00fcber h\u00fcbsche B\u00fccher und \u00d6fen, gr\u00fc\u00dfe an alle in K\u00f6ln"
ENCODED = {
    "as its server says": (WORDS.encode("cp1252"), "text/plain; charset=iso-8859-1"),
    "as the page says": (b'<meta charset="windows-1252"><p>' + WORDS.encode("cp1252"), "text/html"),
    "by its mark": (b"\xff\xfe" + WORDS.encode("utf-16-le"), "text/plain; charset=utf-8"),
    "as UTF-8 though its server says Latin-1": (WORDS.encode(), "text/plain; charset=iso-8859-1"),
    "as UTF-8 where nothing is said": (WORDS.encode(), "text/plain"),
    "by its look where its server is wrong": ((WORDS * 9).encode("cp1252"), "text/plain; charset=utf-8"),
    "where one byte is damaged": ((WORDS * 99).encode() + b"\xff", "text/plain; charset=utf-8"),
    "without a type": (WORDS.encode(), None),
    "as UTF-16 without a mark": (WORDS.encode("utf-16-le"), "text/plain; charset=utf-16le"),
}


@pytest.fixture(scope="module")
def site() -> Generator[WebSite]:
    """The pages."""
    with WebSite(PAGES) as site:
        site.pages["/no head"] = no_head
        for name, (body, type) in ENCODED.items():
            site.pages[f"/{name}"] = Served(body, type)
        yield site


@pytest.fixture(scope="module")
async def web_app(tmp_path_factory: pytest.TempPathFactory, site: WebSite) -> AsyncGenerator[Web]:
    """The pack, in one worker for all tests that need no other settings."""
    async with web(tmp_path_factory.mktemp("web"), site) as app:
        yield app


def examples() -> dict[str, str]:
    """Return the example of each tool."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    tools = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
    found = {name: re.search(r"Example:\n\s+(.+)", text) for name, text in tools.items()}
    return {name: example[1] for name, example in found.items() if example}


# ---------------------------------------------------------------- one page


@pytest.mark.parametrize("tool", TOOLS)
async def test_the_example_of_each_tool_runs(web_app: Web, site: WebSite, tool: str):
    call = re.sub(r"https://example\.(com|org)", site.url, examples()[tool])
    assert await web_app.value(call)


async def test_a_page_comes_as_markdown_of_its_main_content(web_app: Web, site: WebSite):
    text = await web_app.value("web.fetch(url=url)", url=site.url)
    assert "The house has four rooms and a **garden**." in text and "- kitchen\n- hall" in text
    assert "color" not in text
    linked = await web_app.value("web.fetch(url=url, links=True)", url=site.url)
    assert f"[four rooms]({site.url}/rooms)" in linked


async def test_a_page_with_links_says_which_comes_next_and_how_many_are_left_out(web_app: Web, site: WebSite):
    text = await web_app.value("web.fetch(url=url, links=True)", url=f"{site.url}/list")
    assert f"]({site.url}/books/a)" in text
    below = f"\n\nnext: {site.url}/list?page=2\n\nlinks of the page that are not in this text: 1 (web.links lists them)"
    assert text.endswith(below)
    assert "next:" not in await web_app.value("web.fetch(url=url)", url=f"{site.url}/list")


async def test_a_page_comes_as_text_as_its_source_and_cut(web_app: Web, site: WebSite):
    assert "a garden." in await web_app.value("web.fetch(url=url, format='text')", url=site.url)
    assert await web_app.value("web.fetch(url=url, format='raw')", url=site.url) == HOME
    assert await web_app.value("web.fetch(url=url, format='raw', limit=6)", url=site.url) == "<html>"
    assert await web_app.value("web.fetch(url=url)", url=f"{site.url}/notes.txt") == "one\ntwo\n"
    assert await web_app.value("web.fetch(url=url)", url=f"{site.url}/empty") == ""


async def test_json_comes_as_a_value_and_an_image_as_bytes(web_app: Web, site: WebSite):
    value = await web_app.value("web.fetch(url=url, format='json')['names'][1]", url=f"{site.url}/data.json")
    assert value == "b"
    size = await web_app.value("len(web.fetch(url=url, format='raw'))", url=f"{site.url}/logo.png")
    assert size == len(PAGES["/logo.png"].body)
    error = await web_app.error("web.fetch(url=url)", url=f"{site.url}/logo.png")
    assert "it is image/png, which is not text: fetch it with format='raw'" in error


async def test_a_page_is_whole_however_deep_it_is_and_of_however_many_archives(web_app: Web, site: WebSite):
    for format in ("markdown", "text"):
        text = await web_app.value("web.fetch(url=url, format=format)", url=f"{site.url}/deep", format=format)
        assert text.split() == ["first", "words", "deep", "words", "last", "words"]
    assert await web_app.value("web.fetch(url=url)", url=f"{site.url}/archives") == "one two"


async def test_data_that_calls_itself_text_comes_as_bytes(web_app: Web, site: WebSite):
    program = "web.fetch(url=url, format='raw') == b'\\x1f\\x8b\\x08\\0\\xff'"
    assert await web_app.value(program, url=f"{site.url}/binary") is True
    assert "it is data, which is not text" in await web_app.error("web.fetch(url=url)", url=f"{site.url}/binary")


@pytest.mark.parametrize("name", ENCODED)
async def test_the_text_of_a_page_is_decoded_whatever_its_encoding(web_app: Web, site: WebSite, name: str):
    assert WORDS in await web_app.value("web.fetch(url=url, format='text')", url=f"{site.url}/{name}")


async def test_a_status_that_is_not_a_success_is_an_error_that_names_it(web_app: Web, site: WebSite):
    error = await web_app.error("web.fetch(url=url)", url=f"{site.url}/gone")
    assert f"{site.url}/gone answered 410 Gone" in error
    error = await web_app.error("web.fetch(url=url)", url=f"{site.url}/busy")
    assert f"{site.url}/busy answered 503 Service Unavailable; it asks to wait 7 s" in error
    error = await web_app.error("web.fetch(url=url)", url=f"{site.url}/busier")
    assert error.partition("\n")[0].endswith("answered 503 Service Unavailable")


async def test_a_host_that_is_not_there_is_one_sentence_that_says_what_to_check(web_app: Web):
    error = await web_app.error("web.fetch(url='http://no-such-host.invalid/')")
    assert "no address of no-such-host.invalid was found: check its spelling, and that this machine has a net" in error


async def test_a_server_that_is_down_is_said_to_be(tmp_path: Path):
    with WebSite({}) as down:
        pass
    async with web(tmp_path, down) as app:
        error = await app.error("web.fetch(url=url)", url=down.url)
    assert f"{down.url} was not fetched" in error and "check that it is up" in error


@pytest.mark.parametrize(
    ("call", "said"),
    [
        pytest.param("web.fetch(url=url, limit=0)", "limit must be at least 1", id="a limit of nothing"),
        pytest.param("web.fetch(url=url, max_age=-1)", "max_age must be 0 or more", id="a negative age"),
        pytest.param("web.fetch(url=url, format='pdf')", "'markdown'", id="an unknown format"),
        pytest.param("web.links(url=url + '/links', limit=10_001)", "there are 10,000 or more", id="too many links"),
        pytest.param("web.check(urls=[url] * 501)", "501 addresses are too many", id="too many addresses"),
    ],
)
async def test_an_argument_out_of_bounds_is_refused(web_app: Web, site: WebSite, call: str, said: str):
    assert said in await web_app.error(call, url=site.url)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        pytest.param("user_agent", "Me\r\nX-Injected: 1", "user_agent must be printable ASCII", id="another header"),
        pytest.param("max_bytes", 1 << 40, "max_bytes must be from 1 to 104,857,600", id="a page without end"),
    ],
)
async def test_a_setting_out_of_bounds_is_refused(tmp_path: Path, setting: str, value: object, said: str):
    settings: Any = {setting: value}
    async with web(tmp_path, **settings) as app:
        assert said in await app.error("web.fetch(url='http://no-such-host.invalid/')")


# ---------------------------------------------------------------- links, tables, many


async def test_links_are_absolute_and_named_once(web_app: Web, site: WebSite):
    found = await web_app.value("web.links(url=url)", url=f"{site.url}/moved")
    expected = [
        {"url": f"{site.url}/rooms", "text": "four rooms"},
        {"url": "https://other.example/docs/", "text": "out"},
    ]
    assert found == expected
    assert await web_app.value("web.links(url=url, contains='/docs/')", url=site.url) == expected[1:]
    assert await web_app.value("web.links(url=url, limit=1)", url=site.url) == expected[:1]


async def test_tables_are_rows_of_dicts(web_app: Web, site: WebSite):
    assert await web_app.value("web.tables(url=url)", url=f"{site.url}/prices") == [
        {
            "caption": "Prices",
            "columns": ["Fruit", "Price"],
            "rows": [{"Fruit": "apple", "Price": "1.20"}, {"Fruit": "sold out", "Price": "sold out"}],
        }
    ]


async def test_cells_that_span_rows_and_names_that_are_there_twice_move_no_value(web_app: Web, site: WebSite):
    spanned, named, wide = await web_app.value("web.tables(url=url)", url=f"{site.url}/spans")
    assert [list(row.values()) for row in spanned["rows"]] == [["1", "2", "3"], ["1", "4", "5"], ["6", "", "5"]]
    assert named["rows"] == [{"a": "1", "a 3": "2", "a 3 3": "3", "column 4": "4"}]
    assert wide["rows"] == [{"x": "1", "y": "2"}]
    error = await web_app.error("web.tables(url=url)", url=f"{site.url}/cells")
    assert "its tables have more than 100,000 cells: fetch it with format='raw'" in error


async def test_a_link_is_found_however_many_there_are(web_app: Web, site: WebSite):
    found = await web_app.value("web.links(url=url, contains='/10000')", url=f"{site.url}/links")
    assert found == [{"url": f"{site.url}/10000", "text": "x"}]
    assert await web_app.value("len(web.links(url=url))", url=f"{site.url}/links") == 1000


async def test_many_pages_come_in_order_and_one_failure_loses_no_other(web_app: Web, site: WebSite):
    urls = [f"{site.url}/notes.txt", f"{site.url}/gone", "nonsense", f"{site.url}/moved", f"{site.url}/notes.txt"]
    pages = await web_app.value("web.fetch_many(urls=urls)", urls=urls)
    assert [page["url"] for page in pages] == urls
    assert [(page["ok"], page["status"]) for page in pages] == [
        (True, 200),
        (False, 410),
        (False, 0),
        (True, 200),
        (True, 200),
    ]
    assert pages[3]["final_url"] == f"{site.url}/" and pages[3]["title"] == "Our house"
    assert pages[0]["content"] == pages[4]["content"] == "one\ntwo\n"
    assert "is not an address" in pages[2]["error"] and pages[2]["content"] is None
    assert await web_app.value("web.fetch_many(urls=[])") == []


async def test_what_is_not_done_in_time_is_reported_and_the_rest_is_there(tmp_path: Path):
    with WebSite({"/slow": drip(b"HTTP/1.1 200 OK\r\n"), "/quick": Served(b"hi", "text/plain")}) as site:
        slow, quick = f"{site.url}/slow", f"{site.url}/quick"
        async with web(tmp_path, site, batch_seconds=3.0) as app:
            await app.value("web.fetch(url=url)", url=quick)  # what this starts is not part of the time below
            pages = await app.value("web.fetch_many(urls=urls)", urls=[slow, quick])
    assert "it was not there within 3 s" in pages[0]["error"] and pages[1]["ok"]


async def test_addresses_are_checked_without_their_pages(web_app: Web, site: WebSite):
    urls = [f"{site.url}/moved", f"{site.url}/gone", f"{site.url}/logo.png"]
    before = len(site.asked)
    found = await web_app.value("web.check(urls=urls)", urls=urls)
    assert [(one["ok"], one["status"]) for one in found] == [(True, 200), (False, 410), (True, 200)]
    assert found[0]["final_url"] == f"{site.url}/" and "answered 410" in found[1]["error"]
    assert {asked.path for asked in site.asked[before:] if asked.method == "GET"} == {"/gone"}  # asked again in full
    urls = [f"{site.url}/no head", f"{site.url}/choices"]
    found = await web_app.value("web.check(urls=urls)", urls=urls)
    assert [(one["ok"], one["status"]) for one in found] == [(True, 200), (False, 300)]


class Meeting:
    """A page that is served when two ask for it at once, and that notes how many did."""

    def __init__(self) -> None:
        self.most = self._present = 0
        self._second, self._third, self._lock = threading.Event(), threading.Event(), threading.Lock()

    def __call__(self, handler: Handler) -> None:
        with self._lock:
            self._present += 1
            self.most = max(self.most, self._present)
            if self._present > 1:
                self._second.set()
            if self._present > 2:
                self._third.set()
        self._second.wait(PATIENCE)
        self._third.wait(LONG_ENOUGH)  # for others to come, if they are let
        with self._lock:
            self._present -= 1
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi")


async def test_one_host_is_asked_by_few_at_once(web_app: Web, site: WebSite):
    site.pages["/meet"] = meeting = Meeting()
    urls = [f"{site.url}/meet?{number}" for number in range(6)]
    pages = await web_app.value("web.fetch_many(urls=urls, cache=False)", urls=urls)
    assert [page["content"] for page in pages] == ["hi"] * 6
    assert meeting.most == 2


async def test_all_hosts_together_are_asked_by_no_more_than_the_setting_says_and_each_after_a_pause(tmp_path: Path):
    meeting, pause = Meeting(), 0.4
    with WebSite({"/": meeting}) as first, WebSite({"/": meeting}) as second, WebSite({"/": meeting}) as third:
        urls = [site.url for site in (first, second, third)]
        settings: Any = {"concurrency": 2, "robots": False, "pause_seconds": pause}
        async with web(tmp_path, first, second, third, **settings) as app:
            pages = await app.value("web.fetch_many(urls=urls, cache=False)", urls=urls)
            started = time.monotonic()
            await app.value("web.check(urls=urls)", urls=[f"{first.url}/{number}" for number in range(3)])
    assert [page["content"] for page in pages] == ["hi"] * 3
    assert meeting.most == 2
    assert time.monotonic() - started > 2 * pause


# ---------------------------------------------------------------- copies


async def fetched(web_app: Web, site: WebSite, path: str, **options: Any) -> list[str]:
    """Return the methods of the requests that two fetches cause."""
    before = len(site.paths())
    for _ in range(2):
        assert await web_app.value("web.fetch(url=url, **options)", url=site.url + path, options=options) == "copy me"
    return site.paths()[before:]


@pytest.mark.parametrize(
    ("headers", "options", "times"),
    [
        pytest.param(CACHED, {}, 1, id="its server says how long"),
        pytest.param({}, {}, 1, id="its server says nothing"),
        pytest.param({"Cache-Control": "no-store"}, {}, 2, id="its server forbids it"),
        pytest.param({"Cache-Control": "no-cache"}, {}, 2, id="its server wants to be asked"),
        pytest.param({"Expires": "0"}, {}, 2, id="it is over at once"),
        pytest.param({"Cache-Control": "max-age=0"}, {"max_age": 600}, 1, id="the program takes an older one"),
        pytest.param(CACHED, {"max_age": 0}, 2, id="the program wants a new one"),
        pytest.param(CACHED, {"cache": False}, 2, id="the program wants no copy"),
        pytest.param({**CACHED, "Vary": "*"}, {}, 2, id="it varies"),
    ],
)
async def test_a_copy_is_used_as_far_as_it_may(
    web_app: Web, site: WebSite, request: pytest.FixtureRequest, headers: dict[str, str], options: Any, times: int
):
    path = f"/copy/{request.node.callspec.id.replace(' ', '-')}"
    site.pages[path] = Served(b"copy me", "text/plain", headers=headers)
    assert len(await fetched(web_app, site, path, **options)) == times


async def test_an_old_copy_is_confirmed_by_its_server(web_app: Web, site: WebSite):
    site.pages["/tagged"] = Served(b"copy me", "text/plain", headers={"Cache-Control": "no-cache"}, etag='"1"')
    await fetched(web_app, site, "/tagged")
    first, second = [asked for asked in site.asked if asked.path == "/tagged"]
    assert "if-none-match" not in first.headers and second.headers["if-none-match"] == '"1"'
    site.pages["/tagged"] = Served(b"new words", "text/plain", etag='"2"')
    assert await web_app.value("web.fetch(url=url)", url=f"{site.url}/tagged") == "new words"


async def test_a_copy_with_a_mark_that_no_header_can_hold_is_asked_for_anew(web_app: Web, site: WebSite):
    headers = {"Cache-Control": "no-cache", "ETag": '"\xe9"'}
    site.pages["/strange"] = Served(b"copy me", "text/plain", headers=headers)
    assert len(await fetched(web_app, site, "/strange")) == 2


async def test_copies_are_private_and_those_of_other_settings_are_not_used(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    with WebSite({"/": Served(b"inner words", "text/plain", headers=CACHED)}) as inner:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
        async with web(tmp_path / "first", inner) as app:
            assert await app.value("web.fetch(url=url)", url=inner.url) == "inner words"
        async with web(tmp_path / "second") as app:
            assert "internal address" in await app.error("web.fetch(url=url)", url=inner.url)
    (directory,) = (home / "cache").rglob("web")
    assert directory.stat().st_mode & 0o777 == 0o700
    files = {file.name: file.stat().st_mode & 0o077 for file in directory.iterdir()}
    assert files.pop("pages.sqlite") == 0
    assert inner.url.encode() not in (directory / "pages.sqlite").read_bytes()


async def test_a_copy_that_was_made_against_robots_txt_is_not_used_by_those_who_respect_it(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    rules = Served(b"User-agent: *\nDisallow: /\n", "text/plain")
    with WebSite({"/robots.txt": rules, "/": Served(b"hidden words", "text/plain", headers=CACHED)}) as hidden:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
        async with web(tmp_path / "first", hidden, robots=False) as app:
            assert await app.value("web.fetch(url=url)", url=hidden.url) == "hidden words"
        async with web(tmp_path / "second", hidden) as app:
            assert "asks programs not to fetch" in await app.error("web.fetch(url=url)", url=hidden.url)


# ---------------------------------------------------------------- manners


async def test_what_robots_txt_forbids_is_not_fetched(web_app: Web, site: WebSite):
    error = await web_app.error("web.fetch(url=url)", url=f"{site.url}/private")
    assert f"{site.url}/robots.txt asks programs not to fetch {site.url}/private" in error
    assert "set tools.web.robots to false in your own configuration" in error
    (found,) = await web_app.value("web.check(urls=[url])", url=f"{site.url}/private")
    assert "robots.txt asks programs not to" in found["error"]
    assert "/private" not in site.paths()
    assert len([asked for asked in site.asked if asked.path == "/robots.txt"]) == 1


ROBOTS = {
    "a redirect to a secret": (redirect("http://localhost:1024/secret"), "internal address"),
    "a server error": (Served(status=503), "answered 503, so whether"),
    "patterns that take for ever": (
        Served(b"User-agent: *\nDisallow: /" + b"a*" * 30 + b"b$\n", "text/plain"),
        "",
    ),
    "no end": (Served(b"#" * 600_000, "text/plain"), "is larger than 524,288 bytes"),
    "nothing of sense": (Served(b"\xff\xfe\0: *\nDisallow", "text/plain"), ""),
    "a mark before its rules": (
        Served(b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n", "text/plain"),
        "asks programs not",
    ),
    "no file": (Served(status=404), ""),
    "a redirect to itself": (redirect("/robots.txt"), ""),
}


async def test_a_hostile_robots_txt_is_refused_or_harmless(tmp_path: Path):
    sites = {
        name: WebSite({"/robots.txt": page, "/" + "a" * 60: Served(b"fine")}) for name, (page, _) in ROBOTS.items()
    }
    for one in sites.values():
        one.__enter__()
    try:
        async with web(tmp_path, *sites.values(), read_seconds=1.0) as app:
            urls = [f"{one.url}/{'a' * 60}" for one in sites.values()]
            pages = await app.value("web.fetch_many(urls=urls, format='raw')", urls=urls)
    finally:
        for one in sites.values():
            one.__exit__(None, None, None)
    for page, (name, (_, said)) in zip(pages, ROBOTS.items(), strict=True):
        assert said in page["error"] and page["ok"] == (not said), (name, page)
    assert max(len(one.asked) for one in sites.values()) == 7  # one, five redirects, and the page


async def test_no_cookie_and_no_password_of_the_user_is_sent(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
):
    (home / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    headers = {"Set-Cookie": "who=you; Path=/", "Cache-Control": "no-store"}
    with WebSite({"/": Served(b"hi", "text/plain", headers=headers)}) as site:
        async with web(tmp_path, site) as app:
            for _ in range(2):
                await app.value("web.fetch(url=url)", url=site.url)
    assert len(site.paths()) == 2
    assert not any({"cookie", "authorization", "referer"} & asked.headers.keys() for asked in site.asked)


async def test_a_page_that_is_read_for_too_long_is_given_up_and_the_next_one_is_read(tmp_path: Path):
    long = b"".join(b"<p>Paragraph %d of a page that takes seconds to read.</p>" % number for number in range(100_000))
    with WebSite({"/": Served(long), "/short": Served(HOME.encode(), "text/plain")}) as site:
        async with web(tmp_path, site, read_seconds=0.5, robots=False) as app:
            for _ in range(2):
                error = await app.error("web.fetch(url=url)", url=site.url)
                assert f"{site.url}: it was not read within 0.5 s: fetch it with format='raw'" in error
            assert await app.value("web.fetch(url=url)", url=f"{site.url}/short") == HOME
