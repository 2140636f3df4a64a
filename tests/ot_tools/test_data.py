"""The bundled pack ``data``: each kind of table, each tool, its limits and its errors, in its real worker."""

from __future__ import annotations

import ast
import base64
import gzip
import importlib
import json
import sqlite3
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from data_app import DataApp, data_app, write_workbook
from ot.build import IN_WORKERS

SOURCE = IN_WORKERS / "data/data_tools.py"
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
    (directory / "ragged.csv").write_text("a,b\n" + "1,2\n" * 25_000 + "1,2,3\n")
    (directory / "latin.csv").write_text("a,b\n1,Müller\n", encoding="latin-1")
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
        pytest.param({"columns": ["id", "city"], "rows": CITIES, "more": False}, id="table of a document"),
    ],
)
def test_a_table_is_the_same_wherever_it_comes_from(app: DataApp, source: Any):
    found = app.value(f"data.query(sql='SELECT * FROM t ORDER BY id DESC', tables={{'t': {source!r}}})")
    assert found == CITIES[::-1]


def test_a_stored_result_is_a_table_by_its_handle(app: DataApp):
    rows = "[{'n': n, 'word': 'x' * 50} for n in range(9000)]"
    handle = app.value(rows)["handle"]
    found = app.value(f"data.query(sql='SELECT count(*) AS n, sum(n) AS total FROM t', tables={{'t': {handle!r}}})")
    assert found == [{"n": 9000, "total": sum(range(9000))}]


def test_values_of_every_kind_cross_both_ways(app: DataApp):
    program = """
import datetime
rows = [{"day": datetime.date(2026, 1, 2), "at": datetime.datetime(2026, 1, 2, 3, 4), "yes": True,
         "deep": {"a": [1, 2]}, "price": 12.5, "none": None, "mixed": 1, "odd": float("nan")},
        {"day": None, "at": None, "yes": False, "deep": None, "price": 1.0, "none": None, "mixed": "b", "odd": 1.0}]
sql = "SELECT *, day + 1 AS next, deep.a[2] AS second, price::DECIMAL(9, 2) AS exact FROM t"
data.query(sql=sql, tables={"t": rows})
"""
    first, second = app.value(program)
    assert first == {
        **{"day": "2026-01-02", "at": "2026-01-02T03:04:00", "yes": True, "deep": {"a": [1, 2]}, "price": 12.5},
        **{"none": None, "mixed": "1", "odd": "NaN", "next": "2026-01-03", "second": 2, "exact": 12.5},
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
    assert found == [{"n": 7}]


def test_a_sqlite_file_whose_journal_names_another_file_is_not_opened_and_the_other_file_stays(app: DataApp):
    other = app.directory / "precious"
    other.write_bytes(b"words")  # SQLite takes an empty file for none
    with closing(sqlite3.connect(app.directory / "hot.db")) as db:
        db.execute("CREATE TABLE t (n)")
    magic, name = bytes.fromhex("d9d505f920a163d7"), bytes(other)
    head = magic + struct.pack(">IIIII", 0, 0, 2, 512, 4096)
    tail = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    (app.directory / "hot.db-journal").write_bytes(head.ljust(512, b"\0") + tail)
    assert "transaction over several databases" in app.error("data.tables(database='hot.db')")
    assert "transaction over several databases" in app.error(
        "data.query(sql='FROM t', tables={'t': {'database': 'hot.db', 'table': 't'}})"
    )
    assert other.exists()
    # The control: it is a journal that SQLite obeys.
    with closing(sqlite3.connect(app.directory / "hot.db")) as db:
        db.execute("SELECT * FROM t")
    assert not other.exists()


def test_an_empty_table_of_a_database_keeps_its_columns(app: DataApp):
    source = {"database": "shop.sqlite", "sql": "SELECT * FROM cities WHERE id > 99"}
    found = app.value(f"data.query(sql='FROM t', tables={{'t': {source!r}}})")
    assert found == []
    assert app.value(f"data.query(sql='SELECT count(city) AS n FROM t', tables={{'t': {source!r}}})") == [{"n": 0}]


# ---------------------------------------------------------------- what is in it, and nothing else


def rows_of(app: DataApp, source: Any, sql: str = "FROM t") -> list[dict[str, Any]]:
    return app.value(f"data.query(sql={sql!r}, tables={{'t': {source!r}}})")


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("1.75", 1.75, id="a fraction among whole numbers"),
        pytest.param("007", "007", id="a code with zeros"),
        pytest.param("12345678901234567890", 12345678901234567890, id="a large number"),
        pytest.param("soon", "soon", id="a word"),
        pytest.param('"a, ""b"""', 'a, "b"', id="quotes"),
    ],
)
def test_a_value_late_in_a_csv_file_is_as_it_stands_there(app: DataApp, value: str, kept: Any):
    write_lines(app, "late.csv", ["id,v", *(f"{n},{n + 1}" for n in range(25_000)), f"25000,{value}"])
    assert rows_of(app, "late.csv", "SELECT v FROM t WHERE id = 25000") == [{"v": kept}]


def test_a_time_late_in_a_csv_file_is_kept(app: DataApp):
    write_lines(app, "late.csv", ["d", *(["2026-01-02"] * 25_000), "2026-01-03 13:45:00"])
    assert rows_of(app, "late.csv", "SELECT max(d) AS d FROM t") == [{"d": "2026-01-03T13:45:00"}]


@pytest.mark.parametrize(
    ("late", "kept"),
    [({"v": 1.75}, {"v": 1.75}), ({"v": "soon"}, {"v": "soon"}), ({"v": 1, "w": 2}, {"v": 1, "w": 2})],
    ids=["a fraction among whole numbers", "a word", "another key"],
)
def test_a_value_late_in_a_json_file_is_as_it_stands_there(app: DataApp, late: Any, kept: Any):
    write_lines(app, "late.jsonl", [*(['{"v": 5}'] * 25_000), json.dumps(late)])
    (row,) = rows_of(app, "late.jsonl", "SELECT * FROM (SELECT *, row_number() OVER () AS n FROM t) WHERE n = 25001")
    assert {key: row[key] for key in kept} == kept


@pytest.mark.parametrize(
    ("name", "row", "late"),
    [("large.csv", "{},{}", "7,2.5"), ("large.jsonl", '{{"n": {}, "s": {}}}', '{"n": 7, "s": 2.5}')],
    ids=["csv", "json"],
)
def test_a_value_late_in_a_large_file_is_as_it_stands_there(app: DataApp, name: str, row: str, late: str):
    head = ["n,s"] if name.endswith("csv") else []
    write_lines(app, name, [*head, *(row.format(8, "1" + "0" * 15) for _ in range(230_000)), late])
    assert (app.directory / name).stat().st_size > 4 << 20
    assert rows_of(app, name, "SELECT s FROM t WHERE n = 7") == [{"s": 2.5}]


def test_large_files_have_the_columns_of_small_ones(app: DataApp):
    word = "w" * 400
    rows = [
        {"Id": 1, "id": 2, "none": None, "deep": {"a": [1, "b"]}, "mixed": n or "x", "w": word} for n in range(11_000)
    ]
    write_lines(app, "large.jsonl", [json.dumps(row) for row in rows])
    found = rows_of(app, "large.jsonl", "FROM t LIMIT 1")
    assert found == [{"Id": 1, "id_1": 2, "none": None, "deep": {"a": ["1", '"b"']}, "mixed": "x", "w": word}]
    write_lines(app, "large.json", ["[" + ", ".join([f'{{"k{n % 300}": "{word}"}}' for n in range(11_000)]) + "]"])
    assert len(rows_of(app, "large.json", "FROM t LIMIT 1")[0]) == 300
    write_lines(app, "large.csv", ["a;'b';c", *([f"1;'x;{word}';01/02/2026 10:00:00"] * 11_000)])
    assert rows_of(app, "large.csv", "FROM t LIMIT 1") == [{"a": 1, "b": f"x;{word}", "c": "01/02/2026 10:00:00"}]


def write_lines(app: DataApp, name: str, lines: list[str]) -> None:
    (app.directory / name).write_text("\n".join(lines) + "\n")


def test_a_day_that_can_be_read_in_two_ways_stays_text(app: DataApp):
    write_lines(app, "days.csv", ["us,iso", "01/02/2026,2026-01-02", "03/04/2026,2026-03-04"])
    assert rows_of(app, "days.csv") == [
        {"us": "01/02/2026", "iso": "2026-01-02"},
        {"us": "03/04/2026", "iso": "2026-03-04"},
    ]
    write_lines(app, "moments.csv", ["us", "01/02/2026 10:00:00", "03/04/2026 11:00:00"])
    assert rows_of(app, "moments.csv", "FROM t LIMIT 1") == [{"us": "01/02/2026 10:00:00"}]


@pytest.mark.parametrize(
    ("text", "encoding", "given"),
    [
        pytest.param("€5 “x”", "cp1252", "windows-1252", id="windows"),
        pytest.param("Müller", "latin-1", "ISO-8859-1", id="latin"),
        pytest.param("Жук", "koi8-r", "koi8-r", id="russian"),
        pytest.param("Müller", "utf-16", "utf-16", id="utf-16"),
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_a_csv_file_is_read_in_the_encoding_that_is_given(
    app: DataApp, text: str, encoding: str, given: str, packed: bool
):
    data, name = f"id,name\n1,{text}\n".encode(encoding), "encoded.csv.gz" if packed else "encoded.csv"
    (app.directory / name).write_bytes(gzip.compress(data) if packed else data)
    assert rows_of(app, {"path": name, "encoding": given}) == [{"id": 1, "name": text}]


def test_json_of_many_shapes_keeps_its_values_and_its_columns(app: DataApp):
    (app.directory / "mixed.json").write_text(
        json.dumps([{"v": 1, "w": [1]}, {"v": "a", "w": {"b": "c"}}, {"x": [2, "d"]}])
    )
    assert rows_of(app, "mixed.json") == [
        {"v": "1", "w": [1], "x": None},
        {"v": "a", "w": {"b": "c"}, "x": None},
        {"v": None, "w": None, "x": [2, "d"]},
    ]
    assert rows_of(app, "mixed.json", "SELECT x FROM t WHERE v = 'a'") == [{"x": None}]


def test_a_json_file_with_a_mark_at_its_start_is_read_as_without(app: DataApp):
    (app.directory / "marked.json").write_text(json.dumps(CITIES), encoding="utf-8-sig")
    assert rows_of(app, "marked.json") == CITIES


def test_rows_with_many_or_few_common_keys_have_them_as_columns(app: DataApp):
    assert len(rows_of(app, [{f"c{n}": n for n in range(300)}])[0]) == 300
    found = rows_of(app, [{f"k{n}": n, "id": str(n)} for n in range(30)], "SELECT id, k7 FROM t WHERE k7 IS NOT NULL")
    assert found == [{"id": "7", "k7": 7}]


def test_numbers_keep_every_digit(app: DataApp):
    assert rows_of(app, [{"n": 2**70}, {"n": 1}]) == [{"n": str(2**70)}, {"n": "1"}]
    assert rows_of(app, [{"n": 2**63 + 1}]) == [{"n": 2**63 + 1}]
    found = app.value(
        'data.query(sql="SELECT 12345678901234567.89 AS large, 0.25 AS small, 3::DECIMAL(9, 0) AS whole")'
    )
    assert found == [{"large": "12345678901234567.89", "small": 0.25, "whole": 3}]


def test_numbers_without_end_stay_what_they_are(app: DataApp):
    program = "data.query(sql='SELECT max(n) AS n FROM t', tables={'t': [{'n': float('inf')}, {'n': 1.5}]})"
    assert app.value(program) == [{"n": "Infinity"}]


def test_moments_are_told_in_utc_whatever_the_zone_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "America/New_York")
    with data_app(tmp_path) as app:
        sql = "SELECT date_trunc('day', TIMESTAMPTZ '2026-01-02 00:30:00+00') AS day"
        assert app.value(f"data.query(sql={sql!r})") == [{"day": "2026-01-02T00:00:00+00:00"}]


def test_moments_of_a_workbook_are_moments_at_midnight_too(app: DataApp):
    days = [["moment"], [46024.5], [46025], [46025.25]]
    write_workbook(app.directory / "moments.xlsx", {"S": days}, style=22)
    found = rows_of(app, "moments.xlsx", "SELECT moment - INTERVAL 1 HOUR AS at FROM t")
    assert [row["at"] for row in found] == ["2026-01-02T11:00:00", "2026-01-02T23:00:00", "2026-01-03T05:00:00"]


# ---------------------------------------------------------------- the tools


@pytest.mark.parametrize("tool", list(example_calls()))
def test_the_example_of_each_tool_runs(app: DataApp, tool: str):
    assert app.value(example_calls()[tool])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, city FROM 'cities.csv'",
        'SELECT cities.id, city FROM "cities.csv"',
        "SELECT id, city FROM cities.csv",
        "SELECT c.id, city FROM 'cities.xlsx' AS c",
        "FROM 'cities.parquet'",
        "WITH c AS (FROM 'cities.json') SELECT * FROM c",
        "SELECT * FROM read_csv_auto('cities.tsv', delim = '\\t', header = true)",
        "SELECT * FROM read_json_auto('cities.jsonl')",
        "SELECT cities.id, city FROM shop.cities",
        "SELECT * FROM 'shop.sqlite'.cities",
        'SELECT * FROM "shop.sqlite".cities',
        "SELECT * FROM shop.sqlite.cities",
        "SELECT * FROM sqlite_scan('shop.sqlite', 'cities')",
        "SELECT a.* FROM 'cities.csv' a JOIN shop.cities b USING (id) WHERE a.city IN (SELECT city FROM 'cities.json')",
    ],
)
def test_sql_names_files_and_tables_of_databases_itself(app: DataApp, sql: str):
    assert app.value(f"data.query(sql={sql!r} + ' ORDER BY 1')") == CITIES


def test_plain_names_are_tables_of_the_database_that_is_given(app: DataApp):
    asked = "SELECT city FROM main.cities WHERE id > ? AND id IN (SELECT n FROM t)"
    call = f"data.query(sql={asked!r}, database='shop.sqlite', tables={{'t': [{{'n': 2}}]}}, parameters=[1])"
    assert app.value(call) == [{"city": "Rome"}]
    for wrong in ("none.id FROM none", "town FROM cities"):
        said = app.error(f"data.query(sql='SELECT {wrong}', database='shop.sqlite')")
        assert "shop.sqlite: no such " in said
        assert "; there are: cities(id, city)" in said


def test_a_database_runs_the_sql_itself_in_its_own_dialect(app: DataApp):
    asked = "SELECT strftime('%Y', '2025-02-03') AS y, city FROM cities WHERE id = :id GROUP BY id"
    call = f"data.query(sql={asked!r}, database='shop.sqlite', parameters={{'id': 2}})"
    assert app.value(call) == [{"y": "2025", "city": "Rome"}]
    assert app.value("data.query(sql='SELECT 1 AS n FROM cities', database='shop.sqlite', limit=1)") == [{"n": 1}]
    assert "it is only read" in app.error("data.query(sql='DELETE FROM cities', database='shop.sqlite')")


def test_a_file_is_read_as_rows_and_numbers_with_a_zero_before_them_stay_text(app: DataApp):
    (app.directory / "zips.csv").write_text("name,zip,n\nAda,02134,1\nBob,10115,20\n")
    rows = [{"name": "Ada", "zip": "02134", "n": 1}, {"name": "Bob", "zip": "10115", "n": 20}]
    assert app.value("data.read(table='zips.csv')") == rows
    assert app.run("data.read_csv('zips.csv') == data.read('zips.csv')").texts[0] == "true"
    assert app.value("data.query(sql=\"SELECT zip FROM 'zips.csv' WHERE zip LIKE '0%'\")") == [{"zip": "02134"}]
    assert app.value("data.read(table='cities.xlsx', limit=1)") == CITIES[:1]


def test_a_given_table_comes_before_what_its_name_could_be_otherwise(app: DataApp):
    given = "{'cities.csv': [{'id': 7}], 'cities': [{'id': 8}]}"
    sql = "SELECT * FROM 'cities.csv' UNION ALL FROM cities"
    assert app.value(f"data.query(sql={sql!r}, tables={given}, database='shop.sqlite')") == [
        {"id": 7},
        {"id": 8},
    ]


def test_a_database_file_is_the_table_of_the_given_name_or_its_only_one(app: DataApp):
    assert app.value("data.query(sql='FROM cities', tables={'cities': 'shop.sqlite'})") == CITIES
    said = app.error("data.query(sql='FROM t', tables={'t': 'shop.sqlite'})")
    assert 'FROM "shop.sqlite".table. There are: cities, names' in said


def test_parameters_are_values_and_never_sql(app: DataApp):
    program = "data.query(sql='SELECT city FROM t WHERE city = {}', tables={{'t': 'cities.csv'}}, parameters={})"
    assert app.value(program.format("?", ["Oslo"])) == [{"city": "Oslo"}]
    assert app.value(program.format("$name", {"name": "x' OR 'a' = 'a"})) == []


def test_a_limit_cuts_and_all_rows_come_or_an_error_says_that_they_are_too_many(app: DataApp):
    assert app.value("len(data.query(sql='SELECT range AS n FROM range(5000)', limit=1500))") == 1500
    assert app.value("len(data.query(sql='FROM range(5000)'))") == 5000
    assert app.value("len(data.query(sql='FROM range(3)', limit=1_000_000))") == 3
    for limit in ("", ", limit=1_000_000"):
        said = app.error(f"data.query(sql='FROM range(100_001)'{limit})")
        assert "there are more than 100,000 rows: sum them up" in said


def test_columns_of_one_name_are_told_apart(app: DataApp):
    assert app.value("data.query(sql='SELECT 1 AS a, 2 AS a, 3 AS a')") == [{"a": 1, "a_2": 2, "a_3": 3}]


def test_a_description_counts_and_samples(app: DataApp):
    found = app.value("data.describe(table=[{'n': n % 3 or None, 'word': 'w' * 500} for n in range(9)], samples=1)")
    assert found["rows"] == 9
    number, word = found["columns"]
    assert {key: number[key] for key in ("name", "type", "nulls", "distinct", "min", "max")} == {
        **{"name": "n", "type": "BIGINT", "nulls": 3, "distinct": 2, "min": 1, "max": 2}
    }
    assert word["samples"] == ["w" * 200 + "…"]


def test_a_description_counts_distinct_values_and_has_every_column(app: DataApp):
    found = app.value("data.describe(table=[{'n': n} for n in range(1000)])")
    assert found["columns"][0]["distinct"] == 1000
    assert app.value("len(data.describe(table=[{f'c{n}': n for n in range(501)}], samples=0)['columns'])") == 501


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
    assert sorted(tuple(row.values()) for row in found) == expected


def test_a_pivot_has_a_column_for_each_value(app: DataApp):
    rows = [{"city": city, "year": year, "n": n} for city, year, n in (("Oslo", 1, 2), ("Oslo", 2, 3), ("Rome", 1, 5))]
    found = app.value(f"data.pivot(table={rows + rows!r}, rows='city', columns='year', values='n')")
    assert found == [{"city": "Oslo", "1": 4, "2": 6}, {"city": "Rome", "1": 10, "2": None}]


def test_a_pivot_sorts_its_columns_by_value_and_loses_no_row(app: DataApp):
    rows = [{"city": "Oslo", "LABEL": label, "n": 1} for label in (10, 9, None, None)]
    found = app.value(f"data.pivot(table={rows!r}, rows='city', columns='LABEL', values='n')")
    assert [list(row.items()) for row in found] == [[("city", "Oslo"), ("9", 1), ("10", 1), ("null", 2)]]
    words = [{"city": "Oslo", "word": word, "n": 1} for word in ("null", None)]
    found = app.value(f"data.pivot(table={words!r}, rows='city', columns='word', values='word', how='count')")
    assert found == [{"city": "Oslo", "null": 1, "null_2": 0}]


def test_tables_of_a_sqlite_file_are_listed_with_their_columns(app: DataApp):
    found = app.value("data.tables(database='shop.sqlite')")
    assert [table["name"] for table in found] == ["cities", "names"]
    assert found[0]["columns"] == [{"name": "id", "type": "INTEGER"}, {"name": "city", "type": "TEXT"}]


def test_a_column_that_sqlite_computes_is_listed_too(app: DataApp):
    with closing(sqlite3.connect(app.directory / "computed.sqlite")) as db:
        db.execute("CREATE TABLE t (n INTEGER, twice INTEGER AS (n * 2))")
    (table,) = app.value("data.tables(database='computed.sqlite')")
    assert [column["name"] for column in table["columns"]] == ["n", "twice"]


# ---------------------------------------------------------------- charts


@pytest.mark.parametrize("kind", ["bar", "line", "area", "scatter", "pie"])
def test_a_chart_that_is_returned_is_an_image_in_the_reply(app: DataApp, kind: str):
    rows = [{"when": f"2026-0{month}-01", "n": month * 2, "m": month} for month in range(1, 7)]
    y = "n" if kind == "pie" else ["n", "m"]
    reply = app.run(f"data.chart(table={rows!r}, x='when', y={y!r}, kind={kind!r}, title='Growth', width=300)")
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


def test_years_along_an_axis_have_no_comma(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "vl_convert", ModuleType("vl_convert"))
    monkeypatch.syspath_prepend(SOURCE.parent)
    chart = importlib.import_module("data_chart")
    monkeypatch.delitem(sys.modules, "data_chart")
    years = chart.ChartPlan("line", [{"x": 2010, "y": 1}, {"x": 2011, "y": 2}], "quantitative", "year", "n")
    assert years.specification()["encoding"]["x"]["axis"]["format"] == "d"


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
        pytest.param("query(sql='SELECT 1', limit=0)", "limit must be at least 1, not 0", id="no limit"),
        pytest.param("query(sql='FROM t', tables={'t': 5})", "give the path of a csv", id="no source"),
        pytest.param("query(sql='FROM t', tables={'t': []})", "an empty list, which has no columns", id="no rows"),
        pytest.param("query(sql='FROM t', tables={'t': 'a.docx'})", "is not a table", id="another kind of file"),
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
        pytest.param(
            "pivot(table='cities.csv', rows=[], columns='id', values='id')", "names no column", id="no rows stay"
        ),
        pytest.param(
            "chart(table='cities.csv', x='city', y=['id', 'id'], kind='pie')", "one column of numbers", id="two pies"
        ),
        pytest.param(
            "chart(table=[{'a': 'x', 'b': -1}], x='a', y='b', kind='pie')", "below 0", id="a slice below nothing"
        ),
        pytest.param("describe(table='ragged.csv')", "each line must have as many values", id="a line too long"),
        pytest.param("describe(table='latin.csv')", "'encoding': 'windows-1252'", id="another encoding"),
        pytest.param("describe(table={'path': 'latin.csv', 'encoding': 'x'})", "unknown encoding: x", id="no encoding"),
        pytest.param("chart(table=[{'a': 'x'}], x='a', y='a')", "holds no numbers but VARCHAR", id="no numbers"),
        pytest.param(
            "chart(table='cities.csv', x='city', y='id', width=9999)", "100 to 2000 pixels", id="a huge chart"
        ),
    ],
)
def test_what_cannot_be_done_says_why(app: DataApp, call: str, words: str):
    said = app.error(f"data.{call}")
    assert words in said
    assert "ignore_errors" not in said  # an option of DuckDB, and not of ours
