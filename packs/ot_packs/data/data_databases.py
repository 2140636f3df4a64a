"""Databases that tables come from, read and never written: SQLite files by path, PostgreSQL by the settings' names."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from data_engine import Found, TableEngine, apart, plain, quote

import ot_sdk

if TYPE_CHECKING:
    from typing import LiteralString

SQLITE = (".db", ".sqlite", ".sqlite3")
COMPANIONS = ("-wal", "-journal")
"""Files beside a SQLite file that hold what is not in it yet, or no longer."""
MAGIC = bytes.fromhex("d9d505f920a163d7")
"""The last bytes of a journal that names another file, which SQLite removes when it has undone the transaction."""
TRIES = 3
STEPS = 10_000
"""Steps of SQLite's machine between two looks at the clock."""
MAX_VALUE = 64 << 20
MAX_SCHEMA = 1000
"""Characters of the tables and columns that an error names."""
WORDS = re.compile(r"[^\W\d][\w$]*")
HARMLESS = ("random", "gen_random_uuid", "clock_timestamp", "timeofday")
"""Functions that give another value each time, and change nothing."""
TYPES = {
    "int2": "SMALLINT",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "oid": "BIGINT",
    "float4": "DOUBLE",  # as its shortest text says: 1.1, not 1.100000023841858
    "float8": "DOUBLE",
    "bool": "BOOLEAN",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "uuid": "UUID",
    "json": "JSON",
    "jsonb": "JSON",
}
"""DuckDB's types for those of PostgreSQL; all others are text."""
MAX_DIGITS = 38
"""Of DuckDB's exact numbers."""


@dataclass(frozen=True)
class Database:
    """A PostgreSQL database of the settings."""

    url: str
    password: str = ""


@dataclass(frozen=True)
class Selected:
    """Rows of a database, to be read once; the types where the database has some, all known after the last row."""

    columns: list[str]
    types: dict[str, str]
    rows: Iterator[Mapping[str, Any]]


class OpenDatabase(Protocol):
    """A database that is open."""

    def select(self, *, table: str = "", sql: str = "", parameters: Any = None) -> Selected:
        """Return the rows of a table or of a query."""
        ...

    def tables(self) -> list[tuple[str, str, str]]:
        """Return table, column and type of each column, in order."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Databases:
    """Opens databases by name."""

    def __init__(self, settings: Mapping[str, Database]) -> None:
        """Know those of the *settings*."""
        self._settings = settings

    def find(self, name: str) -> str:
        """Return *name* where it can be one of a database, else nothing."""
        return name if name in self._settings or PurePosixPath(name).suffix.lower() in SQLITE else ""

    def open(self, name: str, engine: TableEngine) -> OpenDatabase:
        """Return the database that the settings call *name*, or the SQLite file of that path.

        Raises:
            LookupError: There is neither.
            OSError: It cannot be opened.
        """
        if name in self._settings:
            return PostgresDatabase(name, self._settings[name], engine)
        if "://" in name:
            raise ValueError("a program gives a database's name, not its address: set it in tools.data.databases")
        if PurePosixPath(name).suffix.lower() in SQLITE:
            return SqliteDatabase(name, engine)
        known = ", ".join(self._settings) or "none; add it under tools.data.databases with its url"
        raise LookupError(f"there is no database {name!r}: give a SQLite file (.db, .sqlite), or one of: {known}")


# ---------------------------------------------------------------- SQLite


class SqliteDatabase:
    """A private copy of a SQLite file, so that nothing can change the file itself."""

    def __init__(self, path: str, engine: TableEngine) -> None:
        self._path = path
        self._engine = engine
        self._copy = engine.scratch / f"sqlite-{time.monotonic_ns()}"
        self._copy_files()
        self._db = sqlite3.connect(self._copy)
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
        self._db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._db.execute("PRAGMA trusted_schema = OFF")
        self._db.execute("PRAGMA query_only = ON")
        self._db.set_authorizer(_authorize)
        self._db.set_progress_handler(lambda: time.monotonic() > engine.deadline, STEPS)

    def _copy_files(self) -> None:
        for _ in range(TRIES):
            with ot_sdk.open_file(self._path) as file:
                before = os.fstat(file.fileno())
                if before.st_size > self._engine.limits.file_bytes:
                    raise ValueError(f"{self._path} is larger than {self._engine.limits.file_mb:,} MB: raise file_mb")
                for ending in COMPANIONS:
                    self._copy_beside(ending)
                with self._copy.open("wb") as target:
                    shutil.copyfileobj(file, target, 1 << 20)
                after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns):
                return
        raise OSError(f"{self._path} is being written all the time: try again later")

    def _copy_beside(self, ending: str) -> None:
        target = self._copy.with_name(self._copy.name + ending)
        target.unlink(missing_ok=True)
        with suppress(FileNotFoundError), ot_sdk.open_file(self._path + ending) as file, target.open("wb") as copy:
            _copy_some(file, copy, self._engine.limits.file_bytes)
        if ending == "-journal" and _names_another_file(target):
            target.unlink()
            raise OSError(
                f"{self._path} is in the middle of a transaction over several databases: open it once with the program "
                "that writes it, which ends the transaction, and try again"
            )

    def select(self, *, table: str = "", sql: str = "", parameters: Any = None) -> Selected:
        """Return the rows of a table or of a query."""
        cursor = self._run(sql or f"SELECT * FROM {quote(table)}", parameters or ())
        names = list(apart(column[0] for column in cursor.description or ()))
        return Selected(names, {}, self._rows(cursor, names))

    def _rows(self, cursor: sqlite3.Cursor, names: list[str]) -> Iterator[Mapping[str, Any]]:
        try:
            for row in cursor:
                yield dict(zip(names, row, strict=True))
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def tables(self) -> list[tuple[str, str, str]]:
        """Return table, column and type of each column, in order."""
        self._db.set_authorizer(None)  # our own question
        asked = (
            "SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE c.hidden <> 1 "
            "AND m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY m.name, c.cid"
        )
        return self._run(asked).fetchall()

    def _run(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        try:
            return self._db.execute(sql, parameters)
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> Exception:
        if time.monotonic() > self._engine.deadline:
            return self._engine.too_slow()
        words = str(error)
        if "not authorized" in words or "prohibited" in words:
            words = "it is only read: one SELECT of its tables, and nothing else"
        elif words.startswith(("no such table", "no such column")):
            words += f"; there are: {self._schema()}"
        return ValueError(f"{self._path}: {words}")

    def _schema(self) -> str:
        tables: dict[str, list[str]] = {}
        for table, column, _ in self.tables():
            tables.setdefault(table, []).append(column)
        return ", ".join(f"{table}({', '.join(columns)})" for table, columns in tables.items())[:MAX_SCHEMA]

    def close(self) -> None:
        """End it; the copy goes with the engine's directory."""
        self._db.close()


def first_rows(selected: Selected, limit: int) -> Found:
    """Return the first *limit* rows, as the database itself gives them."""
    rows = [{name: plain(cell) for name, cell in row.items()} for row in islice(selected.rows, limit + 1)]
    return Found(selected.columns, rows[:limit], more=len(rows) > limit)


def _names_another_file(journal: Path) -> bool:
    """Return whether SQLite would follow the name in *journal*; one that begins with a zero is not in use."""
    if not journal.exists():
        return False
    data = journal.read_bytes()
    return data[:1] not in (b"", b"\0") and data.endswith(MAGIC)


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if second == "load_extension" else sqlite3.SQLITE_OK
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


def _copy_some(source: BinaryIO, target: BinaryIO, most: int) -> None:
    while piece := source.read(1 << 20):
        most -= len(piece)
        if most < 0:
            raise ValueError(f"{source.name} is too large: raise the setting tools.data.file_mb")
        target.write(piece)


# ---------------------------------------------------------------- PostgreSQL


class PostgresDatabase:
    """One transaction that cannot write, in a connection of its own."""

    def __init__(self, name: str, database: Database, engine: TableEngine) -> None:
        import psycopg  # noqa: PLC0415 - calls that need no PostgreSQL need not wait for it
        from psycopg.types.string import TextLoader  # noqa: PLC0415 - as above

        self._errors = psycopg.Error
        self._name = name
        self._engine = engine
        given: dict[str, Any] = {"password": database.password} if database.password else {}
        seconds = max(int(min(engine.seconds_left, 10)), 2)
        try:
            self._db = psycopg.connect(database.url, connect_timeout=seconds, application_name="onetool", **given)
        except psycopg.Error as error:
            raise self._failure(error, "cannot be reached") from None
        self._db.adapters.register_loader("interval", TextLoader)  # otherwise a month becomes 30 days
        self._db.read_only = True
        self._execute(f"SET LOCAL statement_timeout = {max(int(engine.seconds_left * 1000), 1)}")
        self._execute("SET LOCAL standard_conforming_strings = on")

    def _execute(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        try:
            # The library wants literals; a query is its author's, and the connection can only read.
            cursor = self._db.execute(cast("LiteralString", sql), parameters or None)
            return cursor.fetchall() if cursor.description else []
        except self._errors as error:
            raise self._failure(error) from None

    def select(self, *, table: str = "", sql: str = "", parameters: Any = None) -> Selected:
        """Return the rows of a table (``schema.table``) or of a query."""
        if parameters:
            raise ValueError(
                f"{self._name} takes no parameters: leave out database=, and write FROM {self._name}.table"
            )
        if table:
            sql = f"SELECT * FROM {'.'.join(quote(part) for part in table.split('.', 1))}"
        else:
            self._refuse_effects(sql)
        # Inside of another one it can only be a query; the line's end closes a comment.
        asked = f"SELECT * FROM (\n{sql.rstrip().removesuffix(';')}\n) AS asked"
        cursor = self._db.cursor()
        rows = self._rows(cursor, asked)
        first = next(rows, None)
        if first is None:
            self._learn_columns(cursor, f"{asked} LIMIT 0")
        columns: list[Any] = list(cursor.description or ())
        names = list(apart(column.name for column in columns))
        types = {name: _type_of(column) for name, column in zip(names, columns, strict=True)}
        return Selected(names, types, _name_rows(types, rows if first is None else chain([first], rows)))

    def _rows(self, cursor: Any, sql: str) -> Iterator[tuple[Any, ...]]:
        try:
            # In this mode the server takes one statement and no more.
            yield from cursor.stream(sql.encode())
        except self._errors as error:
            raise self._failure(error) from None

    def _learn_columns(self, cursor: Any, sql: str) -> None:
        """Ask once more: a stream without rows does not tell its columns."""
        try:
            cursor.execute(sql.encode(), prepare=True)  # one statement and no more, here too
        except self._errors as error:
            raise self._failure(error) from None

    def _refuse_effects(self, sql: str) -> None:
        """Return when *sql* calls no function that may change something: a transaction cannot stop all of them.

        Any word of it may be the name of one; what the database itself calls volatile is refused.
        """
        if re.search(r"u&\s*\"", sql, re.IGNORECASE):
            raise ValueError(f'{self._name}: names with escapes (U&"...") are not read')
        words = list({word.lower() for word in WORDS.findall(sql)} | set(WORDS.findall(sql)))
        asked = (
            "SELECT DISTINCT proname::text FROM pg_catalog.pg_proc WHERE provolatile = 'v' AND proname = ANY(%s) "
            "AND NOT proname = ANY(%s) AND prorettype <> 'pg_catalog.trigger'::regtype "
            "AND NOT 'pg_catalog.internal'::regtype = ANY(proargtypes)"
        )
        found = [name for (name,) in self._execute(asked, words, list(HARMLESS))]
        if found:
            raise ValueError(
                f"{self._name} is only read, and {', '.join(sorted(found))} may change something: use only functions "
                "that are stable or immutable"
            )

    def tables(self) -> list[tuple[str, str, str]]:
        """Return table, column and type of each column, in order."""
        asked = (
            "SELECT CASE table_schema WHEN 'public' THEN table_name ELSE table_schema || '.' || table_name END, "
            "column_name, data_type FROM information_schema.columns "
            "WHERE table_schema NOT IN ('pg_catalog', 'information_schema') "
            "ORDER BY table_schema, table_name, ordinal_position LIMIT 20000"
        )
        return [(table, column, kind) for table, column, kind in self._execute(asked)]

    def _failure(self, error: Exception, what: str = "") -> Exception:
        words = f"{self._name}{' ' + what if what else ''}: {str(error).strip()[:1000]}"
        if "statement timeout" in words:
            return self._engine.too_slow()
        return ConnectionError(words) if what else ValueError(words)

    def close(self) -> None:
        """End it, with nothing to be kept."""
        with suppress(self._errors):
            self._db.cancel()
        self._db.close()


def _type_of(column: Any) -> str:
    from psycopg import postgres  # noqa: PLC0415 - as above

    known = postgres.types.get(column.type_code)
    if known is None:
        return "VARCHAR"
    if known.oid != column.type_code:
        return "JSON"  # an array, of any depth
    if known.name != "numeric":
        return TYPES.get(known.name, "VARCHAR")
    is_ours = column.precision and 0 <= column.scale <= column.precision <= MAX_DIGITS
    return f"DECIMAL({column.precision}, {column.scale})" if is_ours else "DECIMAL"


def _name_rows(types: dict[str, str], rows: Iterator[tuple[Any, ...]]) -> Iterator[Mapping[str, Any]]:
    """Yield *rows* by name, and say at the end which types hold every digit of exact numbers."""
    widths = {name: Digits(kind) for name, kind in types.items() if kind.startswith("DECIMAL")}
    try:
        for row in rows:
            named = dict(zip(types, row, strict=True))
            for name, digits in widths.items():
                named[name] = digits.take(named[name])
            yield named
    finally:
        types.update({name: digits.type for name, digits in widths.items()})


@dataclass
class Digits:
    """How many digits the exact numbers of a column have on both sides of the point."""

    declared: str
    whole: int = 1
    scale: int = 0
    all_finite: bool = True

    def take(self, value: Decimal | None) -> str | None:
        """Count one number, and return it as text: JSON's numbers are floats."""
        if value is None:
            return None
        exponent = value.as_tuple().exponent
        if isinstance(exponent, int):
            self.scale = max(self.scale, -exponent)
            self.whole = max(self.whole, value.adjusted() + 1)
        else:
            self.all_finite = False
        return f"{value:f}"

    @property
    def type(self) -> str:
        """DuckDB's type for all of them."""
        if self.all_finite and self.declared != "DECIMAL":
            return self.declared
        width = max(self.whole + self.scale, 18)
        if width <= MAX_DIGITS and self.all_finite:
            return f"DECIMAL({width}, {self.scale})"
        return "DOUBLE" if self.scale or not self.all_finite else "VARCHAR"
