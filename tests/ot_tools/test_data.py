"""The bundled pack ``data``: each kind of table, each tool, its limits and its errors, in its real worker."""

from __future__ import annotations

import ast
import base64
import gzip
import json
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import ot_tools
from data_app import DataApp, data_app, write_workbook

SOURCE = Path(ot_tools.__file__).parent / "in_workers/data/data_tools.py"
PARQUET = (
    "UEFSMRUAFRAVECwVBBUAFQYVBgAAAQAAAAIAAAAVABUgFSAsFQQVABUGFQYAAAQAAABPc2xvBAAAAFJvbWUVAhk8NQAYDWR1Y2tkYl9zY2hlbWEV"
    "BAAVAiUAGAJpZCUiABUMJQAYBGNpdHklAAAWBBkcGSwmABwVAhkVABkYAmlkFQAWBBYyFjImCDwYBAIAAAAYBAEAAAAWACgEAgAAABgEAQAAABER"
    "ABkcFQAVABUCAAAAJgAcFQwZFQAZGARjaXR5FQAWBBZCFkImOjwYBFJvbWUYBE9zbG8WACgEUm9tZRgET3NsbxERABkcFQAVABUCAAAAFnQWBCYI"
    "FnQAKChEdWNrREIgdmVyc2lvbiB2Mi4wLjAgKGJ1aWxkIGQ1NGNiYmUzZGYpGSwcAAAcAAAA9AAAAFBBUjE="
)
"""Two rows, as DuckDB writes them."""
CITIES = [{"id": 1, "city": "Oslo"}, {"id": 2, "city": "Rome"}]
TEXT = "id,city\n1,Oslo\n2,Rome\n"


def example_calls() -> dict[str, str]:
    functions = [node for node in ast.parse(SOURCE.read_text()).body if isinstance(node, ast.FunctionDef)]
    public = {node.name: ast.get_docstring(node) or "" for node in functions if not node.name.startswith("_")}
    return {name: text.partition("Example:\n")[2].strip() for name, text in public.items()}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DataApp]:
    with data_app(tmp_path_factory.mktemp("data")) as app:
        make_files(app.directory)
        yield app


def make_files(directory: Path) -> None:
    (directory / "cities.csv").write_text(TEXT)
    (directory / "cities.csv.gz").write_bytes(gzip.compress(TEXT.encode()))
    (directory / "cities.tsv").write_text(TEXT.replace(",", "\t"))
    (directory / "cities.json").write_text(json.dumps(CITIES))
    (directory / "cities.jsonl").write_text("".join(json.dumps(city) + "\n" for city in CITIES))
    (directory / "cities.parquet").write_bytes(base64.b64decode(PARQUET))
    write_workbook(directory / "cities.xlsx", {"All": [["id", "city"], [1, "Oslo"], [2, "Rome"]], "None": [["id"]]})
    with closing(sqlite3.connect(directory / "shop.sqlite")) as db:
        db.executescript("CREATE TABLE cities (id INTEGER, city TEXT); CREATE VIEW names AS SELECT city FROM cities;")
        db.executemany("INSERT INTO cities VALUES (:id, :city)", CITIES)
        db.commit()


# ---------------------------------------------------------------- each kind of table


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("cities.csv", id="csv"),
        pytest.param("cities.csv.gz", id="packed csv"),
        pytest.param("cities.tsv", id="tsv"),
        pytest.param("cities.json", id="json"),
        pytest.param("cities.jsonl", id="json lines"),
        pytest.param("cities.parquet", id="parquet"),
        pytest.param("cities.xlsx", id="workbook"),
        pytest.param({"path": "cities.xlsx", "sheet": "All"}, id="sheet by name"),
        pytest.param({"path": "cities.xlsx", "sheet": 0}, id="sheet by number"),
        pytest.param(
            {"path": "cities.csv", "header": True, "delimiter": ",", "encoding": "utf-8"}, id="csv with options"
        ),
        pytest.param({"database": "shop.sqlite", "table": "cities"}, id="table of sqlite"),
        pytest.param({"database": "shop.sqlite", "sql": "SELECT id, city FROM cities"}, id="query of sqlite"),
        pytest.param(CITIES, id="rows"),
        pytest.param({"columns": ["id", "city"], "rows": CITIES, "more": False}, id="result of a query"),
    ],
)
def test_a_table_is_the_same_wherever_it_comes_from(app: DataApp, source: Any):
    found = app.value(f"data.query(sql='SELECT * FROM t ORDER BY id DESC', tables={{'t': {source!r}}})")
    assert found == {"columns": ["id", "city"], "rows": CITIES[::-1], "more": False}


def test_a_stored_result_is_a_table_by_its_handle(app: DataApp):
    rows = "[{'n': n, 'word': 'x' * 50} for n in range(9000)]"
    handle = app.value(rows)["handle"]
    found = app.value(f"data.query(sql='SELECT count(*) AS n, sum(n) AS total FROM t', tables={{'t': {handle!r}}})")
    assert found["rows"] == [{"n": 9000, "total": sum(range(9000))}]


def test_values_of_every_kind_cross_both_ways(app: DataApp):
    program = """
import datetime
rows = [{"day": datetime.date(2026, 1, 2), "at": datetime.datetime(2026, 1, 2, 3, 4), "yes": True,
         "deep": {"a": [1, 2]}, "price": 12.5, "none": None, "mixed": 1, "bad": float("nan")},
        {"day": None, "at": None, "yes": False, "deep": None, "price": 1.0, "none": None, "mixed": "b", "bad": 1.0}]
sql = "SELECT *, day + 1 AS next, deep.a[2] AS second, price::DECIMAL(9, 2) AS exact FROM t"
data.query(sql=sql, tables={"t": rows})
"""
    first, second = app.value(program)["rows"]
    assert first == {
        **{"day": "2026-01-02", "at": "2026-01-02T03:04:00", "yes": True, "deep": {"a": [1, 2]}, "price": 12.5},
        **{"none": None, "mixed": "1", "bad": None, "next": "2026-01-03", "second": 2, "exact": 12.5},
    }
    assert second["mixed"] == "b"


def test_a_sqlite_file_shows_what_is_still_in_its_log(app: DataApp):
    with closing(sqlite3.connect(app.directory / "busy.db")) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (n)")
        db.execute("INSERT INTO t VALUES (7)")
        db.commit()
        assert (app.directory / "busy.db-wal").stat().st_size
        found = app.value("data.query(sql='SELECT n FROM t', tables={'t': {'database': 'busy.db', 'table': 't'}})")
    assert found["rows"] == [{"n": 7}]


def test_an_empty_table_of_a_database_keeps_its_columns(app: DataApp):
    source = {"database": "shop.sqlite", "sql": "SELECT * FROM cities WHERE id > 99"}
    found = app.value(f"data.query(sql='FROM t', tables={{'t': {source!r}}})")
    assert found == {"columns": ["id", "city"], "rows": [], "more": False}


# ---------------------------------------------------------------- the tools


@pytest.mark.parametrize("tool", list(example_calls()))
def test_the_example_of_each_tool_runs(app: DataApp, tool: str):
    assert app.value(example_calls()[tool])


def test_parameters_are_values_and_never_sql(app: DataApp):
    program = "data.query(sql='SELECT city FROM t WHERE city = {}', tables={{'t': 'cities.csv'}}, parameters={})"
    assert app.value(program.format("?", ["Oslo"]))["rows"] == [{"city": "Oslo"}]
    assert app.value(program.format("$name", {"name": "x' OR 'a' = 'a"}))["rows"] == []


def test_a_limit_says_that_there_is_more(app: DataApp):
    found = app.value("data.query(sql='SELECT range AS n FROM range(5000)', limit=1500)")
    assert (len(found["rows"]), found["more"]) == (1500, True)
    assert app.value("data.query(sql='FROM range(3)', limit=3)")["more"] is False


def test_columns_of_one_name_are_told_apart(app: DataApp):
    assert app.value("data.query(sql='SELECT 1 AS a, 2 AS a, 3 AS a')")["rows"] == [{"a": 1, "a_2": 2, "a_3": 3}]


def test_a_description_counts_and_samples(app: DataApp):
    found = app.value("data.describe(table=[{'n': n % 3 or None, 'word': 'w' * 500} for n in range(9)], samples=1)")
    assert found["rows"] == 9
    number, word = found["columns"]
    assert {key: number[key] for key in ("name", "type", "nulls", "distinct", "min", "max")} == {
        **{"name": "n", "type": "BIGINT", "nulls": 3, "distinct": 2, "min": 1, "max": 2}
    }
    assert word["samples"] == ["w" * 200 + "…"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("inner", [(2, "Rome", 20)]),
        ("left", [(1, "Oslo", None), (2, "Rome", 20)]),
        ("right", [(2, "Rome", 20), (3, None, 30)]),
        ("full", [(1, "Oslo", None), (2, "Rome", 20), (3, None, 30)]),
        ("semi", [(2, "Rome")]),
        ("anti", [(1, "Oslo")]),
    ],
)
def test_each_join_keeps_its_rows(app: DataApp, how: str, expected: list[Any]):
    right = [{"key": 2, "sum": 20}, {"key": 3, "sum": 30}]
    found = app.value(f"data.join(left='cities.csv', right={right!r}, on={{'id': 'key'}}, how={how!r})")
    assert sorted(tuple(row.values()) for row in found["rows"]) == expected


def test_a_pivot_has_a_column_for_each_value(app: DataApp):
    rows = [{"city": city, "year": year, "n": n} for city, year, n in (("Oslo", 1, 2), ("Oslo", 2, 3), ("Rome", 1, 5))]
    found = app.value(f"data.pivot(table={rows + rows!r}, rows='city', columns='year', values='n')")
    assert found["rows"] == [{"city": "Oslo", "1": 4, "2": 6}, {"city": "Rome", "1": 10, "2": None}]


def test_tables_of_a_sqlite_file_are_listed_with_their_columns(app: DataApp):
    found = app.value("data.tables(database='shop.sqlite')")
    assert [table["table"] for table in found] == ["cities", "names"]
    assert found[0]["columns"] == [{"name": "id", "type": "INTEGER"}, {"name": "city", "type": "TEXT"}]


# ---------------------------------------------------------------- charts


@pytest.mark.parametrize("kind", ["bar", "line", "area", "scatter", "pie"])
def test_a_chart_that_is_returned_is_an_image_in_the_reply(app: DataApp, kind: str):
    rows = [{"when": f"2026-0{month}-01", "n": month * 2, "m": month} for month in range(1, 7)]
    reply = app.run(f"data.chart(table={rows!r}, x='when', y=['n', 'm'], kind={kind!r}, title='Growth', width=300)")
    assert not reply.is_error, reply.texts
    (block,) = reply.blocks
    png = base64.b64decode(block["data"])
    assert (block["type"], block["mimeType"], png[:8]) == ("image", "image/png", b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert width > 400
    assert height > 400


def test_a_chart_that_is_only_kept_is_not_shown_unless_it_is_asked_for(app: DataApp):
    made = "picture = data.chart(table='cities.csv', x='city', y='id')"
    assert app.run(f"{made}\n1").blocks == ()
    assert len(app.run(f"{made}\not.show(value=picture)\n1").blocks) == 1


def test_names_of_columns_mean_nothing_in_a_chart(app: DataApp):
    name = "a.b[0]'\"; datum.x"
    reply = app.run(
        f"data.chart(table=[{{{name!r}: 'x', 'y.y': 2, {name + '2'!r}: 3}}], x={name!r}, y=['y.y', {name + '2'!r}])"
    )
    assert len(reply.blocks) == 1


# ---------------------------------------------------------------- errors that say what to do


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param("query(sql='SELECT * FROM nothing', tables={'t': [1]})", "Tables: t", id="an unknown table"),
        pytest.param(
            "query(sql='SELECT x FROM t', tables={'t': [{'y': 1}]})", 'Candidate bindings: "y"', id="an unknown column"
        ),
        pytest.param("query(sql='SELEC 1')", "syntax error", id="no sql"),
        pytest.param("query(sql='SELECT 1', limit=0)", "limit must be 1 to 100,000", id="no limit"),
        pytest.param("query(sql='FROM t', tables={'t': 5})", "give the path of a csv", id="no source"),
        pytest.param("query(sql='FROM t', tables={'t': []})", "an empty list, which has no columns", id="no rows"),
        pytest.param("query(sql='FROM t', tables={'t': 'a.docx'})", "is no table", id="another kind of file"),
        pytest.param("query(sql='FROM t', tables={'t': 'gone.csv'})", "gone.csv", id="a file that is not there"),
        pytest.param("query(sql='FROM t', tables={'t': 'shop.sqlite'})", "'table': ...}", id="a database as a file"),
        pytest.param(
            "describe(table={'path': 'cities.xlsx', 'sheet': 'May'})", "there are: All, None", id="an unknown sheet"
        ),
        pytest.param("describe(table={'path': 'cities.xlsx', 'sheet': 'None'})", "has no rows", id="an empty sheet"),
        pytest.param(
            "describe(table={'path': 'cities.csv', 'sheet': 'A'})", "there is no option 'sheet'", id="a wrong option"
        ),
        pytest.param("tables(database='shop')", "add it under tools.data.databases", id="an unknown database"),
        pytest.param(
            "describe(table={'database': 'shop.sqlite'})", "either 'table' or 'sql'", id="no table of a database"
        ),
        pytest.param(
            "describe(table={'database': 'shop.sqlite', 'table': 'x'})", "no such table: x", id="no such table"
        ),
        pytest.param(
            "join(left=[{'a': 1}], right=[{'b': 1}], on='a')", "right has no column 'a'; there are: b", id="no key"
        ),
        pytest.param("chart(table=[{'a': 'x'}], x='a', y='a')", "holds no numbers but VARCHAR", id="no numbers"),
        pytest.param(
            "chart(table='cities.csv', x='city', y='id', width=9999)", "100 to 2000 pixels", id="a huge chart"
        ),
    ],
)
def test_what_cannot_be_done_says_why(app: DataApp, call: str, words: str):
    assert words in app.error(f"data.{call}")
