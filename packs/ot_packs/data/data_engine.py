"""TableEngine: a DuckDB in memory for one call; its tables are loaded, then it is locked, then SQL may run."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from uuid import UUID

import duckdb

BATCH = 1000
AGAIN_SECONDS = 0.05
MAX_SQL = 100_000
MAX_COLUMNS = 2000
TURNS = threading.BoundedSemaphore(2)
"""As many calls at once as the process has memory for; others wait."""
READING = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
"""A PIVOT counts as several statements: it looks first which columns there will be."""
NO_FILES = "file system operations are disabled"
ADVICE = re.compile(
    r"^(Possible (fixes|solution)|Try (increasing|setting)|The search space)",
    re.MULTILINE | re.IGNORECASE,
)
"""Where DuckDB begins to tell of its own options, which a program does not have."""
EXACT = 2**53
"""Up to here a float has every whole number."""


@dataclass(frozen=True)
class CallLimits:
    """What one call may use."""

    seconds: float
    memory_mb: int
    disk_mb: int
    file_mb: int
    threads: int

    @property
    def file_bytes(self) -> int:
        """Bytes of one file, or of the rows of one table."""
        return self.file_mb << 20


class TableEngine:
    """A database that knows only the tables it was given; nothing of it is left after the block."""

    def __init__(self, limits: CallLimits) -> None:
        """Open it, with a directory of its own for what does not fit into memory."""
        limit_memory(limits.memory_mb)
        self.limits = limits
        self.deadline = time.monotonic() + limits.seconds
        if not TURNS.acquire(timeout=limits.seconds):
            raise self.too_slow()
        try:
            self._open()
        except BaseException:
            TURNS.release()
            raise

    def _open(self) -> None:
        self.tables: list[str] = []
        self._directory = TemporaryDirectory(prefix="onetool-data-")
        self.scratch = Path(self._directory.name)
        self._db = duckdb.connect(":memory:", config=_config(self.limits, self.scratch))
        self._db.execute("SET TimeZone = 'UTC'")  # days and hours of moments are the same on every machine
        self._closed = threading.Event()
        self._clock = threading.Thread(target=self._watch, daemon=True)
        self._clock.start()

    def __enter__(self) -> TableEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._clock.join()
        self._db.close()
        self._directory.cleanup()
        TURNS.release()

    @property
    def seconds_left(self) -> float:
        """How long the call may still take.

        Raises:
            TimeoutError: No longer.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise self.too_slow()
        return left

    def too_slow(self) -> TimeoutError:
        """Return the error for a call whose time is over."""
        return TimeoutError(
            f"it took longer than {self.limits.seconds:g} s: read fewer rows or columns, filter earlier, or raise the "
            "setting tools.data.seconds"
        )

    # ---------------------------------------------------------------- before the lock

    def load(self, name: str, select: str, said: Mapping[str, str] | None = None) -> None:
        """Make the table *name* from *select*, which is our own SQL; errors show the texts of *said* as their values.

        Raises:
            ValueError: What it reads is not what it seems to be.
        """
        with self._errors(f"table '{name}' cannot be read", said or {}):
            self._db.execute(f"CREATE TABLE {quote(name)} AS {select}")
        self.tables.append(name)
        if len(columns := self.columns(name)) > MAX_COLUMNS:
            raise ValueError(f"table '{name}' has {len(columns):,} columns, and at most {MAX_COLUMNS:,} are read")

    def ask(self, name: str, sql: str, said: Mapping[str, str]) -> list[Any]:
        """Return what our own *sql* finds out of the file that the table *name* will be made from."""
        with self._errors(f"table '{name}' cannot be read", said):
            return self._db.execute(sql).fetchall()

    def unreadable(self, name: str, text: str, said: Mapping[str, str]) -> ValueError:
        """Return the error for a file of which DuckDB says *text*."""
        return ValueError(f"table '{name}' cannot be read: {self._words(text, said)}")

    def drop(self, name: str) -> None:
        """Forget the table *name*."""
        self._db.execute(f"DROP TABLE {quote(name)}")
        self.tables.remove(name)

    def unquote(self, name: str, column: str) -> None:
        """Make texts of a column of JSON in which texts are: as JSON they would be in quotes."""
        table, value = quote(name), quote(column)
        with self._errors(f"table '{name}' cannot be read", {}):
            asked = f"SELECT coalesce(bool_or(json_type({value}) = 'VARCHAR'), false) FROM {table}"
            (is_mixed,) = self._db.execute(asked).fetchone() or (False,)
            if is_mixed:
                self._db.execute(f"ALTER TABLE {table} ALTER {value} TYPE VARCHAR USING {value} ->> '$'")

    def lock(self) -> None:
        """Shut every way out, for good."""
        self._db.execute("SET enable_external_access = false")
        self._db.execute("SET lock_configuration = true")

    # ---------------------------------------------------------------- after it

    def columns(self, table: str) -> dict[str, str]:
        """Return the types of a table's columns by their names."""
        return {name: kind for name, kind, *_ in self._db.execute(f"DESCRIBE {quote(table)}").fetchall()}

    def check(self, sql: str) -> None:
        """Return when *sql* is one statement that reads.

        Raises:
            ValueError: It is not.
        """
        if len(sql) > MAX_SQL:
            raise ValueError(f"sql has {len(sql):,} characters, and at most {MAX_SQL:,} are read")
        with self._errors("the SQL cannot be read", {}):
            statements = self._db.extract_statements(sql)
        if len(statements) != 1:
            raise ValueError(f"sql must be one statement, not {len(statements)}")
        if statements[0].type not in READING:
            kind = statements[0].type.name
            raise ValueError(f"sql may only read (SELECT, WITH, FROM, PIVOT, DESCRIBE, SUMMARIZE), not {kind}")

    def parse(self, sql: str) -> Any:
        """Return the tree of *sql*, which was checked; None where DuckDB writes none, as of a PIVOT."""
        try:
            ((text,),) = self._db.execute("SELECT json_serialize_sql(?)", [sql]).fetchall()
            tree = json.loads(text)
        except (duckdb.Error, RecursionError):  # if it is wrong, its execution tells why
            return None
        return None if tree["error"] else tree

    def write(self, tree: Any) -> str:
        """Return a *tree* as SQL."""
        with self._errors("the SQL cannot be read", {}):
            ((sql,),) = self._db.execute("SELECT json_deserialize_sql(?)", [json.dumps(tree)]).fetchall()
        return sql

    def rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] | None, limit: int) -> Found:
        """Return the first *limit* rows of *sql*, which was checked or is our own."""
        with self._errors("the SQL failed", {}):
            self._db.execute(sql, parameters or None)
            columns = self._db.description or ()
            names = list(apart(column[0] for column in columns))
            made = [JSON_VALUES.get(str(column[1]), plain) for column in columns]
            rows: list[dict[str, Any]] = []
            while len(rows) <= limit and (batch := self._db.fetchmany(min(BATCH, limit + 1 - len(rows)))):
                rows += [{name: make(cell) for name, make, cell in zip(names, made, row, strict=True)} for row in batch]
        return Found(names, rows[:limit], more=len(rows) > limit)

    # ---------------------------------------------------------------- time and errors

    def _watch(self) -> None:
        if self._closed.wait(max(self.deadline - time.monotonic(), 0)):
            return
        # Between two statements there is nothing to interrupt: again and again, until the call has seen it.
        while not self._closed.wait(AGAIN_SECONDS):
            self._db.interrupt()

    @contextmanager
    def _errors(self, what: str, said: Mapping[str, str]) -> Generator[None]:
        """Turn DuckDB's errors into those that a program knows, without names that only we use."""
        try:
            assert self.seconds_left
            yield
        except duckdb.InterruptException:
            raise self.too_slow() from None
        except (duckdb.OutOfMemoryException, MemoryError):
            # Not a MemoryError: that would say that the program used too much.
            raise RuntimeError(
                f"{what}: it needs more than {self.limits.memory_mb:,} MB of memory and {self.limits.disk_mb:,} MB of "
                "disk: read fewer rows or columns, or raise the settings tools.data.memory_mb and disk_mb"
            ) from None
        except duckdb.Error as error:
            raise ValueError(f"{what}: {self._words(str(error), said)}") from None

    def _words(self, text: str, said: Mapping[str, str]) -> str:
        for ours, theirs in said.items():
            text = text.replace(ours, theirs)
        if said:  # of our own SQL
            text = text.partition("\nLINE 1:")[0]
        text = ADVICE.split(text.replace(str(self.scratch), ""), maxsplit=1)[0][:2000]
        if NO_FILES in text:
            return (
                "SQL reads only the tables that were named: write FROM 'the path of one file', or give a file in "
                "tables={'name': 'its path'}"
            )
        known = f"\nTables: {', '.join(self.tables) or 'none'}" if text.startswith("Catalog Error: Table") else ""
        return text.strip() + known


@dataclass(frozen=True)
class Found:
    """What a statement found."""

    columns: list[str]
    rows: list[dict[str, Any]]
    more: bool


def _config(limits: CallLimits, scratch: Path) -> dict[str, str]:
    return {
        "memory_limit": f"{limits.memory_mb}MiB",
        "threads": str(limits.threads),
        "temp_directory": str(scratch / "spill"),
        "max_temp_directory_size": f"{limits.disk_mb}MiB",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "extension_directory": str(scratch),
        "secret_directory": str(scratch),
        "allow_persistent_secrets": "false",
        # Otherwise SQL could read the variables of this process.
        "python_enable_replacements": "false",
    }


def limit_memory(memory_mb: int) -> None:
    """Let the process fail to get memory before the machine has none: not all that DuckDB uses is in its own limit."""
    try:
        import resource  # noqa: PLC0415 - Windows has none
    except ImportError:
        return
    room = (3 * memory_mb + 1024) << 20
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > room:
        resource.setrlimit(resource.RLIMIT_DATA, (room, hard))


def quote(name: str) -> str:
    """Return *name* as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object) -> str:
    """Return *value* as a text of SQL."""
    return "'" + str(value).replace("'", "''") + "'"


def apart(names: Iterable[str]) -> Iterable[str]:
    """Yield *names*, a repeated one with a number."""
    seen: set[str] = set()
    for name in names:
        given, number = name, 2
        while given in seen:
            given, number = f"{name}_{number}", number + 1
        seen.add(given)
        yield given


def plain(value: Any) -> Any:
    """Return a value of DuckDB as a program likes it: dates are ISO text, exact numbers are plain ones."""
    match value:
        case None | bool() | int() | float() | str() | bytes():
            return value
        case Decimal():
            if value.as_tuple().exponent == 0:
                return int(value)
            return float(value) if abs(value) < EXACT else str(value)
        case datetime() | date() | time_of_day():
            return value.isoformat()
        case timedelta() | UUID():
            return str(value)
        case dict():
            return {str(key): plain(item) for key, item in cast("dict[Any, Any]", value).items()}
        case list() | tuple():
            return [plain(item) for item in cast("list[Any]", value)]
        case _:
            return str(value)


def _json_value(value: Any) -> Any:
    return None if value is None else json.loads(value)


def _json_list(value: Any) -> Any:
    return None if value is None else [_json_value(item) for item in value]


JSON_VALUES: Mapping[str, Callable[[Any], Any]] = {"JSON": _json_value, "JSON[]": _json_list}
"""What DuckDB returns as text of JSON is given to programs as the value that it is."""
