"""What SQL, files and databases cannot do through the pack ``data``: write, look elsewhere, or end its worker."""

from __future__ import annotations

import gzip
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from data_app import SHEETS, DataApp, data_app, write_workbook
from pace import within
from postgres_server import PASSWORD, PostgresServer, postgres_server

SECRET = "TOP-SECRET"
LIMITS = {"memory_mb": 128, "disk_mb": 64, "file_mb": 4}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A database whose user may do everything: only the pack stands between a program and it."""
    with postgres_server() as server:
        server.run(
            "CREATE TABLE orders (id int, word text); INSERT INTO orders VALUES (1, 'a'); CREATE SEQUENCE counter"
        )
        server.run("CREATE FUNCTION grow() RETURNS int LANGUAGE sql AS 'INSERT INTO orders VALUES (9) RETURNING id'")
        yield server


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, server: PostgresServer) -> Iterator[DataApp]:
    databases = {
        "shop": {"url": server.url("admin"), "password": PASSWORD},
        "locked": {"url": server.url("admin"), "password": "wrong-" + PASSWORD},
    }
    place = tmp_path_factory.mktemp("data")
    with data_app(place, {"databases": databases, **LIMITS}) as app:
        make_hostile(app.directory)
        yield app


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory, server: PostgresServer) -> Iterator[DataApp]:
    databases = {"shop": {"url": server.url("admin"), "password": PASSWORD}}
    with data_app(tmp_path_factory.mktemp("hurried"), {"databases": databases, "seconds": 0.5, **LIMITS}) as app:
        make_database(app.directory / "shop.sqlite")
        (app.directory / "open.csv").write_text("n\n1\n")
        (app.directory / "bomb.csv.gz").write_bytes(gzip.compress(b"0123456789abcdef,x\n" * (1 << 20)) * 64)
        yield app


def make_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE t (n); INSERT INTO t VALUES (1)")


def make_hostile(directory: Path) -> None:
    outside = directory.parent
    (outside / "secret.csv").write_text(f"word\n{SECRET}\n")
    make_database(outside / "secret.sqlite")
    (directory / "open.csv").write_text("n,word\n1,a\n")
    (directory / "other.csv").write_text(f"word\n{SECRET}\n")
    (directory / "link.csv").symlink_to(outside / "secret.csv")
    (directory / "settings.csv").symlink_to(outside / "user" / "onetool.yaml")
    (directory / "folder.csv").mkdir()
    os.mkfifo(directory / "pipe.csv")
    (directory / "a'); COPY t TO 'made.csv'; --.csv").write_text("n\n1\n")
    (directory / "line.csv").write_text("a,b\n" + "x" * (3 << 20) + "\n")
    (directory / "big.csv").write_text("x" * (5 << 20))
    (directory / "packed.csv.gz").write_bytes(gzip.compress(b"0123456789abcdef,x\n" * (1 << 18), 1))
    (directory / "deep.json").write_text("[" * 200_000)
    (directory / "damaged.parquet").write_bytes(b"PAR1" + b"\xff" * 200 + b"\xff\xff\x00\x00PAR1")
    (directory / "damaged.xlsx").write_bytes(b"PK\x03\x04" + b"\xff" * 200)
    (directory / "damaged.sqlite").write_bytes(b"SQLite format 3\0" + b"\xff" * 4096)
    make_database(directory / "shop.sqlite")
    for name, place in (("far", "XFD1048576"), ("less_far", "ZZ120000")):
        places = {1: "A1", 2: place}
        write_workbook(directory / f"{name}.xlsx", {"S": [["n"], [1]]}, cell=lambda row, _, places=places: places[row])
    write_workbook(directory / "cells.xlsx", {"S": [["n" * 500], *([[1]] * 10_000)]})
    make_entities(directory / "entities.xlsx")


def make_entities(path: Path) -> None:
    write_workbook(path.with_suffix(".plain"), {"S": [["n"], ["SWAP"]]})
    names = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    with zipfile.ZipFile(path.with_suffix(".plain")) as plain, zipfile.ZipFile(path, "w") as book:
        for name in plain.namelist():
            text = plain.read(name).decode().replace("SWAP", "&e11;")
            book.writestr(name, f'<!DOCTYPE w [<!ENTITY e0 "lol">{names}]>{text}' if SHEETS in text else text)
    path.with_suffix(".plain").unlink()


def tree(directory: Path) -> dict[str, tuple[int, int]]:
    found = ((path, path.lstat()) for path in directory.rglob("*"))
    return {str(path): (status.st_size, status.st_mtime_ns) for path, status in found if not path.is_dir()}


def check_refused(app: DataApp, call: str, words: str) -> None:
    before = tree(app.directory)
    reply = app.run(f"data.{call}")
    said = "\n".join(reply.texts)
    assert SECRET not in said
    assert PASSWORD not in said
    assert reply.is_error == bool(words), said
    assert words in said
    assert "WorkerDied" not in said
    assert tree(app.directory) == before


def sql(text: str) -> str:
    return f"query(sql={text!r}, tables={{'t': 'open.csv'}})"


def table(source: Any) -> str:
    return f"query(sql='FROM t', tables={{'t': {source!r}}})"


def sqlite(text: str) -> str:
    return table({"database": "shop.sqlite", "sql": text})


def postgres(text: str) -> str:
    return table({"database": "shop", "sql": text})


ONLY = "sql may only read"
FULL = "it needs more than 128 MB of memory"
NAMED = "SQL reads only the tables that were named"
LITE = "it is only read"

DUCKDB = {
    "COPY of a table to a file": (sql("COPY t TO 'made.csv'"), ONLY),
    "COPY of a query to a file": (sql("COPY (SELECT 1) TO 'made.csv'"), ONLY),
    "COPY FROM a file": (sql("COPY t FROM 'other.csv'"), ONLY),
    "ATTACH of a file": (sql("ATTACH 'made.duckdb' AS made"), ONLY),
    "INSTALL of an extension": (sql("INSTALL httpfs"), ONLY),
    "LOAD of an extension": (sql("LOAD '/tmp/evil.duckdb_extension'"), ONLY),
    "EXPORT of the database": (sql("EXPORT DATABASE 'made'"), ONLY),
    "IMPORT of a database": (sql("IMPORT DATABASE 'made'"), ONLY),
    "a PRAGMA": (sql("PRAGMA enable_profiling"), ONLY),
    "SET of a safeguard": (sql("SET enable_external_access = true"), ONLY),
    "RESET of a safeguard": (sql("RESET lock_configuration"), ONLY),
    "CREATE SECRET": (sql("CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')"), ONLY),
    "CALL of a function": (sql("CALL enable_logging()"), ONLY),
    "PREPARE of a write": (sql("PREPARE p AS COPY t TO 'made.csv'"), ONLY),
    "EXPLAIN ANALYZE of a write": (sql("EXPLAIN ANALYZE COPY t TO 'made.csv'"), ONLY),
    "a second statement": (sql("SELECT 1; COPY t TO 'made.csv'"), "sql must be one statement, not 2"),
    "no statement at all": (sql("-- nothing"), "sql must be one statement, not 0"),
    "an INSERT in a CTE, which only changes the copy": (
        sql("WITH w AS (INSERT INTO t VALUES (2, 'b') RETURNING n) SELECT n FROM w"),
        "",
    ),
    "read_csv of a file outside": (sql("SELECT * FROM read_csv('../secret.csv')"), "PermissionError"),
    "a file outside in the place of a table": (sql("SELECT * FROM '../secret.csv'"), "PermissionError"),
    "a file outside in a subquery": (sql("SELECT (SELECT max(word) FROM '../secret.csv') FROM t"), "PermissionError"),
    "a link to the outside in the place of a table": (sql("FROM 'link.csv'"), "PermissionError"),
    "a database outside": (sql("FROM '../secret.sqlite'.t"), "PermissionError"),
    "a database outside by its name": (sql('FROM "../secret".t'), '"../secret"'),
    "sqlite_scan of a database outside": (sql("FROM sqlite_scan('../secret.sqlite', 't')"), "PermissionError"),
    "read_text of a file that was not named": (sql("SELECT * FROM read_text('other.csv')"), NAMED),
    "a file in the place of a table of a PIVOT": (sql("PIVOT 'other.csv' ON word USING count(*)"), NAMED),
    "the file that was named, by its descriptor": (sql("SELECT * FROM read_text('/proc/self/fd/*')"), NAMED),
    "read_text of the environment": (sql("SELECT * FROM read_text('/proc/self/environ')"), NAMED),
    "read_blob of a system file": (sql("SELECT * FROM read_blob('/etc/passwd')"), NAMED),
    "read_json of a system file": (sql("SELECT * FROM read_json('/etc/passwd')"), NAMED),
    "sniff_csv of a file": (sql("SELECT * FROM sniff_csv('other.csv')"), NAMED),
    "metadata of a Parquet file": (sql("SELECT * FROM parquet_metadata('cities.parquet')"), NAMED),
    "a list of files": (sql("SELECT * FROM glob('/etc/*')"), NAMED),
    "an address of the web": (sql("SELECT * FROM 'https://127.0.0.1:1/a.csv'"), NAMED),
    "an address of S3": (sql("SELECT * FROM read_parquet('s3://bucket/a.parquet')"), NAMED),
    "a query in a text": (sql("SELECT * FROM query('SELECT * FROM read_text(''other.csv'')')"), NAMED),
    "a query as JSON": (
        sql("FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''other.csv'')'))"),
        NAMED,
    ),
    "the environment by getenv": (sql("SELECT getenv('HOME')"), "getenv does not exist"),
    "a variable of the worker": (sql("SELECT * FROM engine"), "does not exist"),
    "a scan of memory by its address": (sql("SELECT * FROM pandas_scan(1)"), "No function matches"),
    "an expression nested without end": ("query(sql='SELECT ' + '(' * 20000 + '1' + ')' * 20000)", "depth limit"),
    "SQL that is too long": (sql("SELECT '" + "x" * 200_000 + "'"), "at most 100,000 are read"),
    "a list that fills the memory": (sql("SELECT list(range) FROM range(100000000)"), FULL),
    "a text that fills the memory": (sql("SELECT repeat('x', 2000000000) || n FROM t"), FULL),
    "a sort that fills memory and disk": (
        sql("SELECT range, repeat('x', 900) || random() AS s FROM range(300000) ORDER BY s"),
        FULL,
    ),
}
FILES = {
    "a path that goes up": (table("../secret.csv"), "PermissionError"),
    "an absolute path": (table("/etc/passwd.csv"), "PermissionError"),
    "a link to the outside": (table("link.csv"), "PermissionError"),
    "a link to the settings": (table("settings.csv"), "PermissionError"),
    "a directory": (table("folder.csv"), "IsADirectoryError"),
    "a pipe": (table("pipe.csv"), "neither a file nor a directory"),
    "a path with a NUL": (table("a\0.csv"), "ValueError"),
    "a pattern of paths": (table("*.csv"), "FileNotFoundError"),
    "an address in the place of a path": (table("https://127.0.0.1:1/a.csv"), "Error"),
    "a name of a file that is SQL, which is a name": (table("a'); COPY t TO 'made.csv'; --.csv"), ""),
    "an option that is SQL": (table({"path": "open.csv", "delimiter": "', filename = '"}), "cannot be read"),
    "an option that is none of ours": (table({"path": "open.csv", "filename": True}), "there is no option"),
    "a name of a table that is SQL, which is a name": (
        "query(sql='SELECT 1 AS one', tables={'t\" AS SELECT 1; COPY t TO ''made.csv''; --': 'open.csv'})",
        "",
    ),
    "a file with one line of 3 MB": (table("line.csv"), "cannot be read"),
    "a file that is too large": (table("big.csv"), "at most 4 MB are read"),
    "a packed file that decodes to more than file_mb": (
        table({"path": "packed.csv.gz", "encoding": "cp1252"}),
        "packed.csv.gz is too large",
    ),
    "JSON nested without end": (table("deep.json"), "cannot be read"),
    "a damaged Parquet file": (table("damaged.parquet"), "cannot be read"),
    "a damaged workbook": (table("damaged.xlsx"), "damaged.xlsx"),
    "a workbook with a cell far away": (table("far.xlsx"), "without far-away cells"),
    "a workbook with a cell less far away": (table("less_far.xlsx"), "without far-away cells"),
    "a workbook with more than file_mb of cells": (table("cells.xlsx"), "the sheet is too large"),
    "a workbook with entities that grow": (table("entities.xlsx"), "entities.xlsx"),
    "rows that are too large": ("describe(table=[{'w': 'x' * 1000000}] * 5)", "more than 4 MB"),
    "a column that is SQL in join": (
        """join(left='open.csv', right='open.csv', on='n" = 1; COPY t TO ''made.csv''; --')""",
        "left has no column",
    ),
    "a column that is SQL in pivot": (
        """pivot(table='open.csv', rows='n', columns='word")', values='n')""",
        "no column",
    ),
    "an unknown kind of chart": ("chart(table='open.csv', x='n', y='n', kind='../x')", "kind"),
}
SQLITE = {
    "INSERT": (sqlite("INSERT INTO t VALUES (2)"), LITE),
    "DELETE": (sqlite("DELETE FROM t"), LITE),
    "DROP": (sqlite("DROP TABLE t"), LITE),
    "ATTACH": (sqlite("ATTACH '../secret.sqlite' AS s"), "shop.sqlite"),
    "VACUUM INTO a file": (sqlite("VACUUM INTO 'made.sqlite'"), "shop.sqlite"),
    "PRAGMA": (sqlite("PRAGMA query_only = OFF"), LITE),
    "a PRAGMA as a table": (sqlite("SELECT * FROM pragma_database_list"), LITE),
    "load_extension": (sqlite("SELECT load_extension('/tmp/evil.so')"), "shop.sqlite"),
    "writefile": (sqlite("SELECT writefile('made', 'x')"), "no such function"),
    "a second statement": (sqlite("SELECT 1; DROP TABLE t"), "one statement at a time"),
    "a value of 2 GB": (sqlite("SELECT zeroblob(2000000000)"), "too big"),
    "a table's name that is SQL": (
        table({"database": "shop.sqlite", "table": 't"; DROP TABLE t; --'}),
        "no such table",
    ),
    "a file outside": (table({"database": "../secret.sqlite", "table": "t"}), "PermissionError"),
    "a damaged file": (table({"database": "damaged.sqlite", "table": "t"}), "damaged.sqlite"),
}
CHANGES = "may change something"
POSTGRES = {
    "INSERT": (postgres("INSERT INTO orders VALUES (2)"), "syntax error"),
    "INSERT with RETURNING": (postgres("INSERT INTO orders VALUES (2) RETURNING id"), "syntax error"),
    "DELETE in a CTE": (postgres("WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d"), "top level"),
    "SELECT INTO": (postgres("SELECT * INTO made FROM orders"), "not allowed here"),
    "SELECT FOR UPDATE": (postgres("SELECT * FROM orders FOR UPDATE"), "read-only transaction"),
    "a DO block": (postgres("DO $$BEGIN DELETE FROM orders; END$$"), "syntax error"),
    "COPY TO PROGRAM": (postgres("COPY orders TO PROGRAM 'touch /tmp/made'"), "syntax error"),
    "COPY TO PROGRAM after our own bracket": (
        postgres("SELECT 1) AS a; COPY orders TO PROGRAM 'touch /tmp/made'; SELECT * FROM (SELECT 1"),
        "multiple commands",
    ),
    "COMMIT and a write": (
        postgres("SELECT 1) AS a; COMMIT; DELETE FROM orders; SELECT * FROM (SELECT 1"),
        "multiple commands",
    ),
    "another mode of the transaction": (postgres("SET TRANSACTION READ WRITE"), "syntax error"),
    "a comment that is left open": (postgres("SELECT 1 /*"), "unterminated"),
    "set_config of the mode": (postgres("SELECT set_config('transaction_read_only', 'off', true)"), CHANGES),
    "pg_read_file": (postgres("SELECT pg_read_file('/etc/passwd')"), CHANGES),
    "pg_read_file in quotes": (postgres("""SELECT "pg_read_file"('/etc/passwd')"""), CHANGES),
    "pg_read_file behind a comment": (postgres("SELECT pg_catalog.pg_read_file/**/('/etc/passwd')"), CHANGES),
    "pg_read_file in capitals": (postgres("SELECT PG_READ_FILE('/etc/passwd')"), CHANGES),
    "pg_read_file with escapes": (postgres("""SELECT U&"pg\\005fread_file"('/etc/passwd')"""), "names with escapes"),
    "pg_ls_dir": (postgres("SELECT pg_ls_dir('/')"), CHANGES),
    "lo_import": (postgres("SELECT lo_import('/etc/passwd')"), CHANGES),
    "lo_export": (postgres("SELECT lo_export(1, '/tmp/made')"), CHANGES),
    "nextval": (postgres("SELECT nextval('counter')"), CHANGES),
    "setval": (postgres("SELECT setval('counter', 99)"), CHANGES),
    "pg_sleep": (postgres("SELECT pg_sleep(100)"), CHANGES),
    "pg_terminate_backend": (postgres("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"), CHANGES),
    "pg_advisory_lock": (postgres("SELECT pg_advisory_lock(1)"), CHANGES),
    "a query in a text": (postgres("SELECT query_to_xml('DELETE FROM orders', true, true, '')"), CHANGES),
    "a function of its own that writes": (postgres("SELECT grow()"), CHANGES),
    "a table's name that is SQL": (table({"database": "shop", "table": 'orders"; DROP TABLE orders; --'}), "not exist"),
    "an address that the program gives": (table({"database": "postgresql://admin@/x", "table": "t"}), "name, not its"),
    "a wrong password": (table({"database": "locked", "table": "orders"}), "cannot be reached"),
}
ENDLESS = {
    "a recursion without end": sql(
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT sum(n) FROM r"
    ),
    "a product of tables": sql(
        "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
    ),
    "sleep_ms": sql("SELECT sleep_ms(60000)"),
    "a packed file that unpacks to a gigabyte": table("bomb.csv.gz"),
    "a recursion without end in SQLite": sqlite(
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT sum(n) FROM r"
    ),
    "a long query in PostgreSQL": postgres("SELECT count(*) FROM generate_series(1, 1000000000)"),
}


@pytest.mark.parametrize(("call", "words"), [pytest.param(*case, id=name) for name, case in DUCKDB.items()])
def test_sql_only_reads_what_it_was_given(app: DataApp, call: str, words: str):
    check_refused(app, call, words)


@pytest.mark.parametrize(("call", "words"), [pytest.param(*case, id=name) for name, case in FILES.items()])
def test_a_hostile_file_or_name_is_an_error_or_harmless(app: DataApp, call: str, words: str):
    check_refused(app, call, words)


@pytest.mark.parametrize(("call", "words"), [pytest.param(*case, id=name) for name, case in SQLITE.items()])
def test_a_sqlite_file_is_only_read(app: DataApp, call: str, words: str):
    check_refused(app, call, words)


@pytest.mark.parametrize(("call", "words"), [pytest.param(*case, id=name) for name, case in POSTGRES.items()])
def test_a_postgres_database_is_only_read(app: DataApp, server: PostgresServer, call: str, words: str):
    check_refused(app, call, words)
    state = server.run("SELECT count(*), (SELECT last_value FROM counter), (SELECT is_called FROM counter) FROM orders")
    assert state == "1|1|f"
    assert not Path("/tmp/made").exists()


@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in ENDLESS.items()])
def test_what_does_not_end_is_interrupted_and_the_worker_goes_on(hurried: DataApp, call: str):
    with within(10):
        said = hurried.error(f"data.{call}")
    assert "it took longer than 0.5 s" in said


def test_reading_stays_possible_after_all_of_it(app: DataApp):
    assert app.value(f"data.{sqlite('SELECT count(*) AS n FROM t')}") == [{"n": 1}]
    assert app.value(f"data.{postgres('SELECT count(*) AS n FROM orders')}") == [{"n": 1}]


VALUES = {
    "every digit of a decimal": ("12345678901234567.89::numeric(30, 2)", "12345678901234567.89"),
    "every digit of a decimal without a size": ("12345678901234567890.5", "12345678901234567890.5"),
    "a mean, which is a float": ("avg(n) FROM (VALUES (1), (2), (2)) v (n)", 5 / 3),
    "a sum of large numbers": ("sum(n) FROM (VALUES (9223372036854775807), (2)) v (n)", 9223372036854775809),
    "a whole number of 40 digits": (
        "1234567890123456789012345678901234567890",
        "1234567890123456789012345678901234567890",
    ),
    "no number": ("'NaN'::numeric", "NaN"),
    "a number without end": ("'Infinity'::float8", "Infinity"),
    "a short float": ("1.1::float4", 1.1),
    "an array of numbers": ("ARRAY[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
    "an array of texts": ("ARRAY['a', NULL]", ["a", None]),
    "JSON": ("""'{"a": [1, null]}'::jsonb""", {"a": [1, None]}),
    "a month": ("interval '1 month 2 days'", "1 mon 2 days"),
    "a moment": ("timestamptz '2026-01-02 03:04:05+05'", "2026-01-01T22:04:05+00:00"),
    "a query with its semicolon": ("1 AS v ; ", 1),
}


@pytest.mark.parametrize(("expression", "value"), [pytest.param(*case, id=name) for name, case in VALUES.items()])
def test_a_value_of_postgres_is_the_same_here(app: DataApp, expression: str, value: Any):
    (row,) = app.value(f"data.{postgres(f'SELECT {expression}')}")
    assert list(row.values()) == [value]


def test_a_query_of_postgres_that_finds_nothing_has_no_rows(app: DataApp):
    assert app.value(f"data.{postgres('SELECT id, word, 1.5 AS price FROM orders WHERE id > 99')}") == []
