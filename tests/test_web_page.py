"""Pages about the web and data: their programs, with real sites, files and databases."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from data_app import DataApp, data_app, write_workbook
from docs_blocks import DOCS, blocks_of
from postgres_server import PASSWORD, postgres_server
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


DATA = DOCS / "how-to/query-data.md"
DATA_PROGRAMS = {block.title: block.text for block in blocks_of(DATA) if block.language == "python"}
CUSTOMERS = """
CREATE TABLE customers
  (id int, name text, country text, since date, credit numeric(9, 2), extra jsonb, seen timestamptz);
INSERT INTO customers VALUES
  (1, 'Ada', 'UK', '2024-05-01', 10.50, '{"a": [1]}', '2026-01-01 12:00+00'),
  (2, 'Kari', 'Norway', NULL, NULL, NULL, NULL);
CREATE ROLE reader LOGIN PASSWORD '%s'; GRANT SELECT ON customers TO reader;
"""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApp]:
    with postgres_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("UV_CACHE_DIR", uv_cache_dir())
        server.run(CUSTOMERS % PASSWORD)
        settings = {"databases": {"shop": {"url": server.url("reader"), "password": PASSWORD}}}
        with data_app(tmp_path_factory.mktemp("page"), settings) as app:
            make_files(app.directory)
            yield app


def make_files(directory: Path) -> None:
    (directory / "orders.csv").write_text("id,customer_id,amount,day\n1,1,10.5,2026-01-02\n2,2,20,2026-01-03\n3,1,5,\n")
    may = [["order", "customer"], [101, 1], [102, 7], [103, 8]]
    write_workbook(directory / "orders.xlsx", {"April": [["order"], [1]], "May": may})
    (directory / "visits.log").write_text("mon / 10\nmon / 20\ntue / 5\nmon /shop 7\n")
    users = [("a@x.org", "pro"), ("b@x.org", "free"), ("c@x.org", "trial")]
    with closing(sqlite3.connect(directory / "app.sqlite")) as db:
        db.execute("CREATE TABLE users (email, plan)")
        db.executemany("INSERT INTO users VALUES (?, ?)", users)
        db.commit()
    export = [
        {"email": "A@x.org", "plan": "pro"},
        {"email": "b@x.org", "plan": "pro"},
        {"email": "d@x.org", "plan": "free"},
    ]
    (directory / "export.json").write_text(json.dumps(export))


def test_the_page_holds_these_programs() -> None:
    assert list(DATA_PROGRAMS) == ["look", "chart", "orphans", "pivot", "compare", "stored"]


def test_a_file_is_described(app: DataApp):
    assert app.value(DATA_PROGRAMS["look"]) == [
        ["id", "BIGINT", 0, 1, 3],
        ["customer_id", "BIGINT", 0, 1, 2],
        ["amount", "DOUBLE", 0, 5.0, 20.0],
        ["day", "DATE", 1, "2026-01-02", "2026-01-03"],
    ]


def test_a_file_is_joined_with_a_database_and_charted(app: DataApp):
    reply = app.run(DATA_PROGRAMS["chart"])
    assert not reply.is_error, reply.texts
    (block,) = reply.blocks
    assert base64.b64decode(block["data"]).startswith(b"\x89PNG")
    rows = app.value(DATA_PROGRAMS["chart"].rpartition("data.chart")[0] + "revenue")
    assert rows == [{"country": "Norway", "revenue": 20.0}, {"country": "UK", "revenue": 15.5}]


def test_orders_without_a_customer_are_found(app: DataApp):
    assert sorted(app.value(DATA_PROGRAMS["orphans"])) == [102, 103]


def test_rows_of_a_program_are_pivoted(app: DataApp):
    assert app.value(DATA_PROGRAMS["pivot"]) == [
        {"page": "/", "mon": 15.0, "tue": 5.0},
        {"page": "/shop", "mon": 7.0, "tue": None},
    ]


def test_a_sqlite_file_is_compared_with_an_export(app: DataApp):
    assert app.value(DATA_PROGRAMS["compare"]) == [
        {"email": "b@x.org", "in_app": "free", "in_export": "pro"},
        {"email": "d@x.org", "in_app": None, "in_export": "free"},
    ]


def test_a_stored_result_is_queried_by_its_handle(app: DataApp):
    handle = app.value("[{'status': 500 if n % 4 == 0 else 200, 'path': '/' + 'x' * 40} for n in range(4000)]")[
        "handle"
    ]
    assert app.value(DATA_PROGRAMS["stored"].replace("HANDLE", handle)) == [
        {"status": 200, "n": 3000},
        {"status": 500, "n": 1000},
    ]


def test_types_of_postgres_arrive_as_they_are(app: DataApp):
    source = {"database": "shop", "table": "customers"}
    columns = {column["name"]: column["type"] for column in app.value(f"data.describe(table={source!r})")["columns"]}
    assert columns == {
        **{"id": "INTEGER", "name": "VARCHAR", "country": "VARCHAR", "since": "DATE", "credit": "DECIMAL(9,2)"},
        **{"extra": "JSON", "seen": "TIMESTAMP WITH TIME ZONE"},
    }
    sql = "SELECT since, credit, extra, seen FROM t WHERE id = 1"
    (row,) = app.value(f"data.query(sql={sql!r}, tables={{'t': {source!r}}})")
    assert row == {"since": "2024-05-01", "credit": 10.5, "extra": {"a": [1]}, "seen": "2026-01-01T12:00:00+00:00"}
    (table,) = app.value("data.tables(database='shop')")
    assert (table["name"], table["columns"][0]) == ("customers", {"name": "id", "type": "integer"})
