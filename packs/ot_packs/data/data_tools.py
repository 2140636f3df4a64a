# /// script
# requires-python = ">=3.12"
# dependencies = [
#     "duckdb>=2,<3",
#     "psycopg[binary]>=3.3,<4",
#     "python-calamine>=0.9,<1",
#     "pytz>=2025",
#     "vl-convert-python>=1.9,<2",
# ]
# ///
"""SQL over CSV, JSON, Parquet, Excel, SQLite, PostgreSQL and rows; charts."""

from __future__ import annotations

# ruff: noqa: E402 - a pack file opens with its name and its tools
pack = "data"

__all__ = ["chart", "describe", "join", "pivot", "query", "read", "tables"]
__ot_read_only__ = ["chart", "describe", "join", "pivot", "query", "read", "tables"]
__ot_needs__ = {
    "chart": ["file.read"],
    "describe": ["file.read"],
    "join": ["file.read"],
    "pivot": ["file.read"],
    "query": ["file.read"],
    "read": ["file.read"],
    "tables": ["file.read"],
}

from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypedDict

from data_databases import Database, Databases, first_rows
from data_engine import CallLimits, Found, TableEngine, apart, literal, quote
from data_references import SqlReferences
from data_sources import Sources

import ot_sdk

MAX_LIMIT = 100_000
MAX_SAMPLES = 20
MAX_SHOWN = 200
MAX_COLUMNS = 500
EXACT_ROWS = 1_000_000
"""Up to here distinct values are counted, and beyond it estimated."""
JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "right": "RIGHT JOIN", "full": "FULL JOIN"}
FILTERS = {"semi": "SEMI JOIN", "anti": "ANTI JOIN"}
SUMS = {"sum": "sum", "count": "count", "mean": "avg", "min": "min", "max": "max", "median": "median"}


class FileSource(TypedDict):
    """A file with options; a CSV file also takes header, delimiter and encoding."""

    path: str
    sheet: NotRequired[str | int]


class DatabaseSource(TypedDict):
    """A table of a database, or what a query there finds."""

    database: str
    table: NotRequired[str]
    sql: NotRequired[str]


type Source = str | list[dict[str, Any]] | FileSource | DatabaseSource


@dataclass(frozen=True)
class Config:
    """The settings ``tools.data``."""

    databases: dict[str, Database] = field(default_factory=dict[str, Database])
    """PostgreSQL databases by the name that programs use, each with url and password"""
    seconds: float = 25.0
    """Time of one call"""
    memory_mb: int = 1024
    """Memory of one call; two run at once"""
    disk_mb: int = 4096
    """Disk for what does not fit into memory"""
    file_mb: int = 1024
    """Size of a file, and of the rows of one table"""
    threads: int = 2
    """Threads of one call"""

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if not (0 < self.seconds <= 3600 and self.threads >= 1 and self.file_mb >= 1 and self.disk_mb >= 1):
            raise ValueError("seconds, threads, file_mb and disk_mb must be more than 0")
        if self.memory_mb < 128:
            raise ValueError("memory_mb must be at least 128")
        for name, database in self.databases.items():
            if not database.url.startswith(("postgresql://", "postgres://")):
                raise ValueError(f"databases.{name}.url must begin with postgresql://; SQLite files are given by path")


class Column(TypedDict):
    """What is in one column."""

    name: str
    type: str
    nulls: int
    distinct: int
    min: Any
    max: Any
    samples: list[Any]


class Description(TypedDict):
    """What is in a table."""

    rows: int
    columns: list[Column]


class TableColumn(TypedDict):
    """One column of a database's table."""

    name: str
    type: str


class Table(TypedDict):
    """One table of a database."""

    name: str
    columns: list[TableColumn]


class Chart(TypedDict):
    """Stands for the image: it is shown when a program returns it, or by ot.show."""

    type: str
    block: str
    mime_type: str
    size: int


def query(
    *,
    sql: str,
    tables: dict[str, Source] | None = None,
    parameters: list[Any] | dict[str, Any] | None = None,
    limit: int = 100_000,
    database: str = "",
) -> list[dict[str, Any]]:
    """Run SQL (one SELECT of DuckDB's) over CSV, JSON, Parquet and Excel files, databases, stored results and rows.

    Args:
        sql: The query, which only reads. FROM 'sales.csv' names a file and FROM shop.orders a table of a database
            (of the settings, or of the SQLite file shop.db; also "data/shop.db".orders); others are names of tables.
        tables: By name: a path (csv, tsv, json, jsonl, parquet, xlsx, xls, ods; also .csv.gz, .json.gz), a list of
            dicts, the handle of a stored result, {"path": "a.xlsx", "sheet": "May"}, or
            {"database": "shop", "table": "orders"} (or "sql": a query that the database itself runs), where the
            database is a name of the settings (PostgreSQL) or a path (SQLite).
        parameters: Values for ? (a list) or $name (a dict) in sql.
        limit: How many rows to return at most; there may be more when as many come back.
        database: The database (SQLite file, or name of the settings) that runs sql itself, in its own SQL; with tables=
            only plain names that those do not have are its tables.

    Returns:
        A dict for each row. Dates are ISO text, times with a zone are in UTC, and decimals of 2**53 and more are text.

    Example:
        data.query(sql="SELECT city, count(*) AS n FROM 'cities.csv' WHERE id < ? GROUP BY city", parameters=[9])
    """
    most = _most_rows(limit)
    config: Config = ot_sdk.config()
    databases = Databases(config.databases)
    references = SqlReferences(tables or {}, databases, database)
    with TableEngine(_limits(config)) as engine:
        if database and not tables:
            with closing(databases.open(database, engine)) as opened:
                return _rows(first_rows(opened.select(sql=sql, parameters=parameters), most), limit)
        sql = references.take(sql, engine)
        Sources(engine, databases).load_all({**(tables or {}), **references.sources})
        return _rows(engine.rows(sql, parameters, most), limit)


def read(*, table: Source, sheet: str | int = "", database: str = "", limit: int = 100_000) -> list[dict[str, Any]]:
    """Read a CSV, JSON, Parquet or Excel file, or another table, as a list of dicts.

    Args:
        table: A table, as in query.
        sheet: The sheet of a workbook, by its name or its number from 0; else the first.
        database: The database that has the table.
        limit: How many rows to return at most; there may be more when as many come back.

    Returns:
        A dict for each row; numbers are numbers, and dates ISO text.

    Example:
        data.read(table=[{"city": "Oslo", "visits": 3}])
    """
    most = _most_rows(limit)
    with _engine({"t": _source(table, sheet, database)}) as engine:
        return _rows(engine.rows("FROM t", None, most), limit)


def describe(*, table: Source, samples: int = 3, sheet: str | int = "", database: str = "") -> Description:
    """Describe a dataset, such as a CSV file: its columns, types, nulls, distinct values, minimum, maximum, samples.

    Args:
        table: As in query: a path, rows, a handle, or a dict that names a sheet or a database's table.
        samples: How many values of each column to show.
        sheet: The sheet of a workbook, as in read.
        database: The database that has the table.

    Returns:
        rows (how many) and columns; distinct is an estimate beyond a million rows.

    Example:
        data.describe(table=[{"city": "Oslo", "visits": 3}, {"city": "Rome", "visits": None}])
    """
    if not 0 <= samples <= MAX_SAMPLES:
        raise ValueError(f"samples must be 0 to {MAX_SAMPLES}, not {samples}")
    with _engine({"t": _source(table, sheet, database)}) as engine:
        total = engine.rows("SELECT count(*) AS n FROM t", None, 1).rows[0]["n"]
        count = "count(DISTINCT {})" if total <= EXACT_ROWS else "approx_count_distinct({})"
        types = engine.columns("t").items()
        return {"rows": total, "columns": [_column(engine, name, kind, samples, count) for name, kind in types]}


def join(
    *,
    left: Source,
    right: Source,
    on: str | list[str] | dict[str, str],
    how: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner",
    limit: int = 100_000,
) -> list[dict[str, Any]]:
    """Join two tables or spreadsheets by columns; how="anti" keeps rows without a partner, "semi" those with one.

    Args:
        left: A table, as in query.
        right: A table, as in query.
        on: The column, or columns, that both have, or {"left's column": "right's column"}.
        how: Which rows to keep.
        limit: How many rows to return at most; there may be more when as many come back.

    Returns:
        Rows, as query. A column of right whose name left has too gets a number: name_2.

    Example:
        data.join(left=[{"id": 1}, {"id": 2}], right=[{"id": 2}], on="id", how="anti")
    """
    most = _most_rows(limit)
    if how not in JOINS and how not in FILTERS:
        raise ValueError(f"how must be one of {', '.join([*JOINS, *FILTERS])}, not {how!r}")
    pairs = on if isinstance(on, dict) else dict.fromkeys([on] if isinstance(on, str) else on, "")
    if not pairs:
        raise ValueError("on names no column")
    with _engine({"l": left, "r": right}) as engine:
        lefts, rights = engine.columns("l"), engine.columns("r")
        keys = {
            _check_column(name, lefts, "left"): _check_column(other or name, rights, "right")
            for name, other in pairs.items()
        }
        matches = " AND ".join(f"l.{quote(name)} = r.{quote(other)}" for name, other in keys.items())
        kept = [f"l.{quote(name)}" for name in lefts]
        if how in ("right", "full"):
            both = {f"l.{quote(a)}": f"coalesce(l.{quote(a)}, r.{quote(b)}) AS {quote(a)}" for a, b in keys.items()}
            kept = [both.get(name, name) for name in kept]
        if how in JOINS:
            # An equal column stands once, under the name that left has for it.
            kept += [f"r.{quote(name)}" for name in rights if name not in keys.values()]
        sql = f"SELECT {', '.join(kept)} FROM l {(JOINS | FILTERS)[how]} r ON {matches}"
        return _rows(engine.rows(sql, None, most), limit)


def pivot(
    *,
    table: Source,
    rows: str | list[str],
    columns: str,
    values: str,
    how: Literal["sum", "count", "mean", "min", "max", "median"] = "sum",
    limit: int = 100_000,
) -> list[dict[str, Any]]:
    """Turn the values of one column into columns of their own, with a sum (or count, mean ...) in each cell.

    Args:
        table: A table, as in query.
        rows: The column, or columns, whose values stay rows.
        columns: The column whose values become columns, at most 500.
        values: The column that is summed up.
        how: What a cell holds of its values.
        limit: How many rows to return at most; there may be more when as many come back.

    Returns:
        Rows, as query; they are sorted by what stays, and columns by their values. What has no
        value in columns is in a column called null.

    Example:
        data.pivot(table=[{"city": "Oslo", "year": 2025, "n": 3}], rows="city", columns="year", values="n")
    """
    most = _most_rows(limit)
    if how not in SUMS:
        raise ValueError(f"how must be one of {', '.join(SUMS)}, not {how!r}")
    with _engine({"t": table}) as engine:
        known = engine.columns("t")
        stay = ", ".join(
            quote(_check_column(row, known, "table")) for row in ([rows] if isinstance(rows, str) else rows)
        )
        if not stay:
            raise ValueError("rows names no column: to sum up the whole table, use query")
        across, value = quote(_check_column(columns, known, "table")), quote(_check_column(values, known, "table"))
        asked = f"SELECT v::VARCHAR AS name FROM (SELECT DISTINCT {across} AS v FROM t) ORDER BY v NULLS LAST"
        made = [row["name"] for row in engine.rows(asked, None, MAX_COLUMNS + 1).rows]
        if len(made) > MAX_COLUMNS:
            raise ValueError(f"{columns} has more values than a pivot has columns, which are at most {MAX_COLUMNS}")
        # DuckDB leaves out what has no value, and sorts 10 before 9.
        *named, missing = apart([*(name for name in made if name is not None), "null"])
        names = ", ".join(literal(name) for name in (named if None not in made else [*named, missing]))
        *_, label = apart([*map(str.lower, known), "label"])
        labelled = f"SELECT *, coalesce({across}::VARCHAR, {literal(missing)}) AS {quote(label)} FROM t"
        how_made = f"ON {quote(label)} IN ({names}) USING {SUMS[how]}({value}) GROUP BY {stay} ORDER BY {stay}"
        sql = f"PIVOT ({labelled}) {how_made}"
        return _rows(engine.rows(sql, None, most), limit)


def chart(
    *,
    table: Source,
    x: str,
    y: str | list[str],
    kind: Literal["bar", "line", "area", "scatter", "pie"] = "bar",
    series: str = "",
    title: str = "",
    width: int = 640,
    height: int = 400,
) -> Chart:
    """Draw a bar, line, area, scatter or pie chart of a table, CSV file or rows, as an image that the user sees.

    Args:
        table: A table, as in query; at most 5,000 rows, so group larger ones by query first.
        x: The column along the axis, or whose values are the slices of a pie.
        y: The column of numbers, or several, each a series.
        kind: How it is drawn.
        series: A column whose values are drawn apart, each in its colour.
        title: What stands above it.
        width: Pixels of the plot, 100 to 2000.
        height: As width.

    Returns:
        What stands for the image: return it, or give it to ot.show.

    Example:
        data.chart(table=[{"city": "Oslo", "visits": 3}, {"city": "Rome", "visits": 5}], x="city", y="visits")
    """
    import data_chart  # noqa: PLC0415 - other calls need not wait for it

    with _engine({"t": table}) as engine:
        known = engine.columns("t")
        heights = [_check_column(name, known, "table") for name in ([y] if isinstance(y, str) else y)]
        if not heights or (series and len(heights) > 1):
            raise ValueError("y names one column, or several without series")
        if kind == "pie" and (series or len(heights) > 1):
            raise ValueError("a pie shows one column of numbers and no series: draw bars, or a pie for each")
        if wrong := [name for name in heights if not data_chart.is_number(known[name])]:
            raise ValueError(f"{', '.join(wrong)} holds no numbers but {known[wrong[0]]}")
        across = quote(_check_column(x, known, "table"))
        apart = quote(_check_column(series, known, "table")) if series else ""
        parts = [
            _points(across, name, apart or (f"'{name.replace(chr(39), 2 * chr(39))}'" if len(heights) > 1 else ""))
            for name in heights
        ]
        found = engine.rows(" UNION ALL ".join(parts), None, data_chart.MAX_POINTS + 1)
        plan = data_chart.ChartPlan(
            kind,
            found.rows,
            data_chart.type_of(known[x], kind),
            x,
            heights[0] if len(heights) == 1 else "",
            series or ("series" if len(heights) > 1 else ""),
            title[:MAX_SHOWN],
            width,
            height,
        )
        plan.check()
        ot_sdk.progress(1, 2, f"drawing {len(found.rows):,} points")
        shown = ot_sdk.image(plan.png())
        return {"type": shown["type"], "block": shown["block"], "mime_type": shown["mime_type"], "size": shown["size"]}


def tables(*, database: str) -> list[Table]:
    """List the tables and views of a database with their columns: its schema.

    Args:
        database: A name of the setting tools.data.databases (PostgreSQL), or the path of a SQLite file.

    Returns:
        For each its name, as query takes it, and its columns with their types.

    Example:
        data.tables(database="shop.sqlite")
    """
    found: dict[str, list[TableColumn]] = {}
    config: Config = ot_sdk.config()
    with TableEngine(_limits(config)) as engine, closing(Databases(config.databases).open(database, engine)) as opened:
        for table, column, kind in opened.tables():
            found.setdefault(table, []).append({"name": column, "type": kind})
    return [{"name": name, "columns": columns} for name, columns in found.items()]


# ---------------------------------------------------------------- parts


@contextmanager
def _engine(tables: Mapping[str, Source]) -> Generator[TableEngine]:
    config: Config = ot_sdk.config()
    with TableEngine(_limits(config)) as engine:
        Sources(engine, Databases(config.databases)).load_all(tables)
        yield engine


def _limits(config: Config) -> CallLimits:
    return CallLimits(config.seconds, config.memory_mb, config.disk_mb, config.file_mb, config.threads)


def _most_rows(limit: int) -> int:
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit:,}")
    return min(limit, MAX_LIMIT)


def _rows(found: Found, limit: int) -> list[dict[str, Any]]:
    if found.more and limit >= MAX_LIMIT:
        raise ValueError(f"there are more than {MAX_LIMIT:,} rows: sum them up or filter them, or give a smaller limit")
    return found.rows


def _source(table: Source, sheet: str | int, database: str) -> Source:
    if not isinstance(table, str) or not (sheet or database):
        return table
    return {"database": database, "table": table} if database else {"path": table, "sheet": sheet}


def _check_column(name: str, columns: Mapping[str, str], where: str) -> str:
    if name not in columns:
        raise ValueError(f"{where} has no column {name!r}; there are: {', '.join(columns)[:1000]}")
    return name


def _column(engine: TableEngine, name: str, kind: str, samples: int, count: str) -> Column:
    column = quote(name)
    sums = f"count(*) - count({column}) AS nulls, {count.format(column)} AS distinct"
    ends = f"min({column}) AS smallest, max({column}) AS largest"
    (found,) = engine.rows(f"SELECT {sums}, {ends} FROM t", None, 1).rows
    some = f"SELECT DISTINCT {column} AS v FROM (SELECT {column} FROM t WHERE {column} IS NOT NULL LIMIT 1000)"
    shown = engine.rows(f"{some} LIMIT {samples}", None, MAX_SAMPLES).rows if samples else []
    return {
        "name": name,
        "type": kind,
        "nulls": found["nulls"],
        "distinct": found["distinct"],
        "min": _short(found["smallest"]),
        "max": _short(found["largest"]),
        "samples": [_short(row["v"]) for row in shown],
    }


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > MAX_SHOWN:
        return value[:MAX_SHOWN] + "…"
    long = isinstance(value, bytes | list | dict) and len(str(value)) > MAX_SHOWN
    return str(value)[:MAX_SHOWN] + "…" if long else value


def _points(across: str, name: str, apart: str) -> str:
    parts = f", {apart}::VARCHAR AS series" if apart else ""
    return f"SELECT {across} AS x, {quote(name)}::DOUBLE AS y{parts} FROM t WHERE {quote(name)} IS NOT NULL"
