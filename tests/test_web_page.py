"""The page how-to/look-things-up-on-the-web.md: each of its programs, with a site on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from docs_blocks import DOCS, blocks_of
from uv_outside import uv_cache_dir
from web_bed import Web, web
from web_site import Served, WebSite

pytestmark = pytest.mark.anyio

PAGE = DOCS / "how-to/look-things-up-on-the-web.md"
EXAMPLE = "https://example.com"
PROGRAMS = {Path(str(block)).name: block.text for block in blocks_of(PAGE) if block.language == "python"}
TEXT = "<html><title>{title}</title><body><main><h1>{title}</h1><p>{text}</p></main></body></html>"


def page(title: str, text: str) -> Served:
    """Return a page of a title and a paragraph."""
    return Served(TEXT.format(title=title, text=text).encode())


def anchors(*paths: str) -> str:
    return " ".join(f'<a href="{path}">{path.strip("/").replace("/", " ")}</a>' for path in paths)


def prices(**fruits: str) -> str:
    rows = "".join(f"<tr><td>{fruit}</td><td>{price}</td></tr>" for fruit, price in fruits.items())
    return f"<table><tr><th>Fruit</th><th>Price</th></tr>{rows}</table>"


def api(**paths: Any) -> Served:
    return Served(
        json.dumps({"paths": {f"/{path}": value for path, value in paths.items()}}).encode(), "application/json"
    )


def guide(number: int) -> str:
    return "Raise the timeout, then the other timeout." if number % 10 == 0 else "Nothing about waiting here."


PAGES = {
    **{f"/guide/{number}": page(f"Part {number}", guide(number)) for number in range(1, 30)},  # the last is missing
    "/resources": page("Resources", anchors("/guide/1", "/gone", "/docs/", "/moved")),
    "/moved": Served(status=302, headers={"Location": "/guide/2"}),
    "/api/v1/openapi.json": api(books={"get": {}}, shelves={"get": {}}, loans={"get": {}}),
    "/api/v2/openapi.json": api(books={"get": {}}, shelves={"get": {}, "post": {}}, readers={"get": {}}),
    "/shops/north": page("North", prices(apple="1.20", pear="0.90")),
    "/shops/south": page("South", prices(apple="1.10", plum="2.00")),
    "/docs/": page("Documentation", anchors("/docs/start", "/docs/settings", "/blog/news")),
    "/docs/start": page("Start", "Install it, then run it."),
    "/docs/settings": page("Settings", "Set the time that it may take."),
}


EXPECTED: list[Any] = [
    {
        "mention it": [
            {"page": f"Part {number}", "times": 2, "url": f"{EXAMPLE}/guide/{number}"} for number in (10, 20)
        ],
        "not fetched": [f"{EXAMPLE}/guide/30 answered 404 Not Found"],
    },
    [{"link": "gone", "url": f"{EXAMPLE}/gone", "why": f"{EXAMPLE}/gone answered 404 Not Found"}],
    {"added": ["/readers"], "removed": ["/loans"], "changed": ["/shelves"]},
    [
        {"shop": "north", "Fruit": "pear", "Price": "0.90"},
        {"shop": "south", "Fruit": "apple", "Price": "1.10"},
        {"shop": "north", "Fruit": "apple", "Price": "1.20"},
    ],
]


@pytest.fixture(scope="module")
def site() -> Generator[WebSite]:
    """What the page calls example.com."""
    with WebSite(PAGES) as site:
        yield site


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where programs write."""
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
async def web_app(directory: Path, site: WebSite) -> AsyncGenerator[Web]:
    """The pack, in one worker for all programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", uv_cache_dir())
        async with web(directory, site) as app:
            yield app


async def play(web_app: Web, site: WebSite, number: int) -> Any:
    """Return the value of one of the page's programs, in which addresses are those of the page again."""
    value = await web_app.value([*PROGRAMS.values()][number].replace(EXAMPLE, site.url))
    return json.loads(json.dumps(value).replace(site.url, EXAMPLE))


@pytest.mark.parametrize("number", range(len(EXPECTED)), ids=["mentions", "dead links", "two versions", "tables"])
async def test_a_program_of_the_page_finds_what_it_says(web_app: Web, site: WebSite, number: int):
    assert await play(web_app, site, number) == EXPECTED[number]


async def test_the_program_that_collects_a_section_writes_it(web_app: Web, site: WebSite, directory: Path):
    assert len(PROGRAMS) == len(EXPECTED) + 1
    await play(web_app, site, len(EXPECTED))
    text = (directory / "work" / "docs.md").read_text(encoding="utf-8")
    assert "# Start\n\n" in text and "Install it, then run it." in text and "Set the time" in text
    assert "news" not in text
