"""Sources: what a program names as a table, and how each kind is loaded into the engine."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

from data_databases import Databases
from data_detection import csv_reader, json_reader
from data_engine import TableEngine, literal, quote
from data_workbook import read_sheet

import ot_sdk

MAX_TABLES = 50
MAX_NAME = 100
PAGE = 5000
"""Rows of a stored result that are asked for at once; fewer when they are large."""
LINES = 10_000
HANDLE = re.compile(r"[A-Za-z0-9_-]{22,64}")
FORMATS = {
    "csv": ("csv", "tsv", "txt"),
    "json": ("json", "jsonl", "ndjson", "geojson"),
    "parquet": ("parquet", "pq"),
    "workbook": ("xlsx", "xlsm", "xlsb", "xls", "ods"),
    "sqlite": ("db", "sqlite", "sqlite3"),
}
BY_SUFFIX = {suffix: kind for kind, suffixes in FORMATS.items() for suffix in suffixes}
OPTIONS = {
    "csv": {"header": bool, "delimiter": str, "encoding": str},
    "json": {},
    "parquet": {},
    "workbook": {"sheet": (str, int), "header": bool},
}
"""What else a dict with a path may say, by the file's format."""
ENCODINGS = ("utf-8", "utf-16", "latin-1")
"""What DuckDB decodes itself."""
HINTS = {
    "csv": "each line must have as many values as the first; what is not detected can be given: {'path': ..., "
    "'delimiter': ';', 'header': False, 'encoding': 'windows-1252'}",
    "json": "it must be a list of objects, or an object on each line",
}
WHOLE = range(-(2**63), 2**64)
"""Whole numbers that JSON's readers keep; they make floats of others."""
HOW = (
    "give the path of a csv, tsv, json, jsonl, parquet, xlsx, xls or ods file, the handle of a stored result, a list "
    "of dicts, {'path': ..., 'sheet': ...}, or {'database': name or SQLite file, "
    "'table': ...} (or 'sql': ...)"
)


class Sources:
    """Loads what the tables of one call are made from."""

    def __init__(self, engine: TableEngine, databases: Databases) -> None:
        """Load into *engine*."""
        self._engine = engine
        self._databases = databases
        self._files = 0

    def load_all(self, tables: Mapping[str, Any]) -> None:
        """Load each source under its name, and lock the engine.

        Raises:
            ValueError, TypeError, OSError: One cannot be read; the text says which and why.
        """
        if len(tables) > MAX_TABLES:
            raise ValueError(f"tables names {len(tables)} tables, and at most {MAX_TABLES} are loaded")
        for name, source in tables.items():
            if not name or len(name) > MAX_NAME:
                raise ValueError(f"the name of a table has 1 to {MAX_NAME} characters, not {name[:MAX_NAME]!r}")
            self._load(name, source)
        self._engine.lock()

    def _load(self, name: str, source: Any) -> None:
        match source:
            case str() if HANDLE.fullmatch(source):
                self._load_result(name, source, "")
            case str():
                self._load_file(name, source, {})
            case list():
                self._load_rows(name, cast("list[Any]", source))
            case {"rows": list() as rows, **others}:
                self._load_rows(name, cast("list[Any]", rows), cast("dict[str, Any]", others).get("columns"))
            case {"path": str() as path, **options}:
                self._load_file(name, path, cast("dict[str, Any]", options))
            case {"result": str() as handle, **others}:
                self._load_result(name, handle, str(cast("dict[str, Any]", others).get("path", "")))
            case {"database": str() as database, **wanted}:
                self._load_database(name, database, cast("dict[str, Any]", wanted))
            case _:
                raise ValueError(f"table '{name}' cannot be made from this {type(source).__name__}: {HOW}")

    # ---------------------------------------------------------------- files

    def _load_file(self, name: str, path: str, options: Mapping[str, Any]) -> None:
        kind, packed = format_of(path)
        if kind == "sqlite":
            self._load_database(name, path, {"table": self._only_table(name, path)})
            return
        _check_options(path, options, OPTIONS[kind])
        with ot_sdk.open_file(path) as file:
            check_size(file, self._engine.limits.file_bytes)
            if kind == "workbook":
                sheet = read_sheet(file, options.get("sheet", 0), self._engine, header=options.get("header", True))
                self._load_json(name, sheet, path)
                return
            self._load_text_file(name, file, path, kind, dict(options), packed)

    def _load_text_file(
        self, name: str, file: BinaryIO, path: str, kind: str, options: dict[str, Any], packed: bool
    ) -> None:
        if options.get("encoding", "utf-8") not in ENCODINGS:
            at = str(self._decode(file, path, options.pop("encoding"), packed=packed))
            packed = False
        else:
            at = self._path(file)
        if kind == "json" and file.read(4) == b"\xef\xbb\xbf[":
            options["format"] = "array"  # the mark hides it from DuckDB
        try:
            self._load_table(name, self._reader(name, kind, at, options, path, packed=packed), {at: path})
        except ValueError as error:
            raise ValueError(f"{error}\n{HINTS[kind]}" if kind in HINTS else str(error)) from None

    def _reader(self, name: str, kind: str, at: str, options: Mapping[str, Any], said: str, *, packed: bool) -> str:
        """Return the call of DuckDB that reads the file at *at*.

        Every value has a say in its column's type: one that comes late would be rounded or cut to fit.
        """
        if kind == "parquet":
            return f"read_parquet({literal(at)})"
        given = [f"{key} = {value if isinstance(value, bool) else literal(value)}" for key, value in options.items()]
        given.append(f"compression = '{'gzip' if packed else 'none'}'")
        if kind == "json":
            return json_reader(name, at, given, self._engine, said, packed=packed)
        given.append("dateformat = '%Y-%m-%d'")  # 01/02/2024 is a day in January or in February: it stays text
        return csv_reader(name, at, given, self._engine, said, packed=packed)

    def _load_table(self, name: str, reader: str, said: Mapping[str, str]) -> None:
        """Load what *reader* reads, with its columns as columns and its texts as texts."""
        self._engine.load(name, f"SELECT * FROM {reader}", said)
        columns = self._engine.columns(name)
        if list(columns) == ["json"] and columns["json"].startswith("MAP("):
            # DuckDB infers a single MAP column for rows that have many keys, or few in common.
            self._engine.drop(name)
            self._engine.load(name, f"SELECT * FROM {reader[:-1]}, map_inference_threshold = -1)", said)
            columns = self._engine.columns(name)
        for column, kind in columns.items():
            if kind == "JSON":
                self._engine.unquote(name, column)

    def _path(self, file: BinaryIO) -> str:
        """Return where DuckDB finds the open file itself, whatever has its name now."""
        at = f"/proc/self/fd/{file.fileno()}"
        if Path(at).exists():
            return at
        copy = self._new_file()
        with copy.open("wb") as target:
            shutil.copyfileobj(file, target)
        return str(copy)

    def _decode(self, file: BinaryIO, path: str, encoding: str, *, packed: bool) -> Path:
        """Return a copy in UTF-8."""
        left, at = self._engine.limits.file_bytes, self._new_file()
        opened = gzip.GzipFile(fileobj=file) if packed else file
        try:
            with (
                io.TextIOWrapper(cast("BinaryIO", opened), encoding, newline="") as text,
                at.open("w", encoding="utf-8", newline="") as copy,
            ):
                while piece := text.read(1 << 20):
                    left -= copy.write(piece)
                    if left < 0:
                        raise ValueError(f"{path} is too large: raise the setting tools.data.file_mb")
                    assert self._engine.seconds_left
        except (LookupError, UnicodeError, gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{path} cannot be read as {encoding}: {error}") from None
        return at

    # ---------------------------------------------------------------- rows

    def _load_rows(self, name: str, rows: Sequence[Any], columns: Any = None) -> None:
        if not rows:
            self._load_nothing(name, columns)
            return
        self._load_json(name, self._write(name, alike(map(_as_row, rows))), f"table '{name}'")

    def _load_nothing(self, name: str, columns: Any) -> None:
        if not isinstance(columns, list) or not columns:
            raise ValueError(f"table '{name}' is an empty list, which has no columns: leave it out, or give a row")
        parts = ", ".join(f"NULL::VARCHAR AS {quote(str(column))}" for column in cast("list[Any]", columns))
        self._engine.load(name, f"SELECT {parts} LIMIT 0")

    def _load_json(self, name: str, at: Path, said: str, types: Mapping[str, str] | None = None) -> None:
        biggest = max(self._engine.limits.memory_mb // 32, 1) << 20  # each thread has room for two
        given = ["format = 'newline_delimited'", f"maximum_object_size = {biggest}"]
        if types:
            pairs = ", ".join(f"{literal(column)}: {literal(kind)}" for column, kind in types.items())
            reader = f"read_json({', '.join([literal(at), *given])}, columns = {{{pairs}}})"
            self._engine.load(name, f"SELECT * FROM {reader}", {str(at): said})
        else:
            reader = json_reader(name, str(at), given, self._engine, said, packed=False)
            self._load_table(name, reader, {str(at): said})
        at.unlink()

    def _write(self, name: str, rows: Iterable[Mapping[str, Any]]) -> Path:
        """Write *rows* as JSON, a line each."""
        left, at = self._engine.limits.file_bytes, self._new_file()
        with at.open("w", encoding="utf-8") as file:
            for number, row in enumerate(rows):
                left -= file.write(json.dumps(row, default=as_json) + "\n")
                if left < 0:
                    raise ValueError(
                        f"table '{name}' has more than {self._engine.limits.file_mb:,} MB: read fewer rows or columns, "
                        "or raise the setting tools.data.file_mb"
                    )
                if not number % PAGE:
                    assert self._engine.seconds_left
        return at

    def _new_file(self) -> Path:
        self._files += 1
        return self._engine.scratch / f"table-{self._files}"

    # ---------------------------------------------------------------- stored results

    def _load_result(self, name: str, handle: str, path: str) -> None:
        try:
            outline = ot_sdk.call_tool("ot.result", handle=handle, outline=True, path=path)
        except ot_sdk.ToolCallFailed as error:
            if error.kind != "ValueError" or path:
                raise
            self._load_text(name, handle)
            return
        if outline["type"] == "dict" and outline["keys"].get("rows") == "list":
            path = f"{path}.rows".lstrip(".")
        elif outline["type"] != "list":
            keys = ", ".join(outline.get("keys", {}))
            raise ValueError(f"the stored result of table '{name}' is not a list; give the path of one in it: {keys}")
        pages = pages_of(handle, path)
        first = next(pages, [])
        if not first:
            raise ValueError(f"table '{name}': the stored result is an empty list, which has no columns")
        rows = (_as_row(row) for page in _chain(first, pages) for row in page)
        self._load_json(name, self._write(name, alike(rows)), "the stored result")

    def _load_text(self, name: str, handle: str) -> None:
        """Load a stored text, which is taken for CSV."""
        at, offset = self._new_file(), 1
        with at.open("w", encoding="utf-8") as file:
            while True:
                page = ot_sdk.call_tool("ot.result", handle=handle, offset=offset, limit=LINES)
                file.writelines(f"{line}\n" for line in page["lines"])
                offset += page["returned"]
                if not page["has_more"] or not page["returned"]:
                    break
        self._load_table(name, self._reader(name, "csv", str(at), {}, handle, packed=False), {str(at): handle})

    # ---------------------------------------------------------------- databases

    def _load_database(self, name: str, database: str, wanted: Mapping[str, Any]) -> None:
        _check_options(f"table '{name}'", wanted, {"table": str, "sql": str})
        if len(wanted) != 1:
            raise ValueError(f"table '{name}': give either 'table' or 'sql' beside 'database'")
        with closing(self._databases.open(database, self._engine)) as opened:
            found = opened.select(table=wanted.get("table", ""), sql=wanted.get("sql", ""))
            at = self._write(name, found.rows if found.types else alike(found.rows))
        if not at.stat().st_size:
            types = found.types or dict.fromkeys(found.columns, "VARCHAR")
            parts = ", ".join(f"NULL::{kind} AS {quote(column)}" for column, kind in types.items())
            self._engine.load(name, f"SELECT {parts} LIMIT 0")
            return
        self._load_json(name, at, f"the rows of {database}", found.types)

    def _only_table(self, name: str, database: str) -> str:
        """Return which table of a database is meant by *name*: the one that has it, or the only one."""
        with closing(self._databases.open(database, self._engine)) as opened:
            tables = [*dict.fromkeys(table for table, *_ in opened.tables())]
        if len(tables) != 1 and name not in tables:
            known = ", ".join(tables)[:1000] or "none"
            raise ValueError(
                f"{database} is a database, and it is unclear which of its tables is meant: give {{'database': "
                f"{database!r}, 'table': ...}}, or write FROM \"{database}\".table. There are: {known}"
            )
        return name if name in tables else tables[0]


def format_of(path: str) -> tuple[str, bool]:
    """Return what kind of file has this name, and whether it is packed by gzip.

    Raises:
        ValueError: It cannot be told, or is not read.
    """
    suffixes = [suffix.lstrip(".").lower() for suffix in PurePosixPath(path).suffixes]
    packed = suffixes[-1:] == ["gz"]
    kind = BY_SUFFIX.get((suffixes[:-1] if packed else suffixes)[-1:][0] if suffixes[packed:] else "")
    if kind is None or (packed and kind not in ("csv", "json")):
        raise ValueError(f"{path!r} is not a table: {HOW}")
    return kind, packed


def check_size(file: BinaryIO, most: int) -> None:
    """Return when a file is not too large.

    Raises:
        ValueError: It is.
    """
    if (size := os.fstat(file.fileno()).st_size) > most:
        raise ValueError(
            f"{file.name} has {size >> 20:,} MB, and at most {most >> 20:,} MB are read: raise the setting "
            "tools.data.file_mb"
        )


def _check_options(what: str, options: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for option, value in options.items():
        if option not in known:
            raise ValueError(f"{what}: there is no option {option!r}; there are {', '.join(known) or 'none'}")
        if not isinstance(value, known[option]):
            raise TypeError(f"{what}: {option} cannot be a {type(value).__name__}")


def pages_of(handle: str, path: str) -> Iterator[list[Any]]:
    """Yield the rows of a stored list, as many at once as may cross."""
    start, size = 0, PAGE
    while True:
        try:
            page = ot_sdk.call_tool("ot.result", handle=handle, path=f"{path}[{start}:{start + size}]")
        except ot_sdk.ToolCallFailed as error:
            if size == 1 or error.kind not in ("ValueError", "ResultTooLarge", "DataTooLarge"):
                raise
            size = max(size // 8, 1)
            continue
        yield page
        start += len(page)
        if len(page) < size:
            return


def _chain(first: list[Any], others: Iterator[list[Any]]) -> Iterator[list[Any]]:
    yield first
    yield from others


def _as_row(row: Any) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        return {"value": row}
    return {str(key): value for key, value in cast("dict[Any, Any]", row).items()}


def alike(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield *rows* with one kind of value in each column, which are all texts where text and others mix."""
    held = list(rows)
    mixed = {column for column, kinds in _kinds(held).items() if len(kinds) > 1 and str in kinds}
    for row in held:
        yield {key: _text(value) if key in mixed else value for key, value in row.items()}


def _kinds(rows: Iterable[Mapping[str, Any]]) -> dict[str, set[type]]:
    kinds: dict[str, set[type]] = {}
    for row in rows:
        for key, value in row.items():
            if value is not None:
                kinds.setdefault(key, set()).update(_kind(value))
    return kinds


def _kind(value: Any) -> tuple[type, ...]:
    if isinstance(value, date | time):
        return (str,)
    if isinstance(value, int) and value not in WHOLE:
        return (int, str)  # only as text does it keep its digits
    return (type(value),)


def _text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value, default=as_json).strip('"')


def as_json(value: Any) -> Any:
    """Return what JSON has no type for as what it has."""
    match value:
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case set() | frozenset() | tuple():
            return list(cast("Iterable[Any]", value))
        case _:
            return str(value)
