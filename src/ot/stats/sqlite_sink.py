"""SqliteSink: keeps rows in one SQLite file that several servers write at the same time."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from ot.config.principal import os_user
from ot.files.private_file import hold_lock
from ot.files.shared_database import open_shared_database
from ot.stats import schema
from ot.stats.rows import ConnectionRow, RunRow, StatsRow

logger = logging.getLogger(__name__)

CLEAN_SECONDS = 3600.0
CLEAN_ROWS = 5_000
"""Rows that one transaction removes: others who write must not wait for long."""
HOURS_KEPT = 8 * schema.DAY
DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class SqliteSink:
    """Every write is one short transaction, so a row and the sums that hold it are there together."""

    def __init__(
        self, path: Path, *, retention_days: int, detail_days: int = 30, clock: Callable[[], float] = time.time
    ) -> None:
        """Write to *path*, made at the first write; 0 days keep for ever."""
        self._path = path
        self._detail_days = detail_days
        self._retention_days = retention_days
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._clean_at = 0.0

    def write(self, rows: Sequence[StatsRow], lost: int = 0) -> None:
        """Keep *rows*, all or none, and the number of those that were *lost* before them.

        Raises:
            OSError: They cannot be kept now: the disk is full, the file is locked or not ours to write.
        """
        try:
            self._write_or_begin_anew(rows, lost)
        except sqlite3.Error as error:
            self.close()
            raise OSError(f"{self._path}: {error}") from error

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _write_or_begin_anew(self, rows: Sequence[StatsRow], lost: int) -> None:
        try:
            self._write(rows, lost)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            self.close()
            set_aside(self._path)
            self._write(rows, lost)

    def _write(self, rows: Sequence[StatsRow], lost: int) -> None:
        connection = self._open()
        sums = schema.Sums()
        sums.add(rows)
        with transaction(connection):
            for table, values in _details(rows).items():
                places = ", ".join("?" * len(values[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({places})", values)
            for table, statement in schema.ADD.items():
                connection.executemany(statement, sums.of(table))
            if lost:
                connection.execute("INSERT INTO losses VALUES (?, ?)", (self._clock(), lost))
        if self._clock() >= self._clean_at:
            self._clean_at = self._clock() + CLEAN_SECONDS
            try:
                self._clean(connection)
            except sqlite3.Error as error:
                # The rows are kept: if it were told, the writer would write them again, and they would count twice.
                logger.warning("old statistics could not be removed, which is tried again in an hour: %s", error)

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._file == _identity(self._path):
            return self._connection
        # The file was removed or replaced: nobody will read what is written to the old one.
        self.close()
        self._connection = open_for_writing(self._path)
        self._file = _identity(self._path)
        return self._connection

    def _clean(self, connection: sqlite3.Connection) -> None:
        """Remove what is older than it is to be kept, a little at a time."""
        now = self._clock()
        if self._detail_days:
            for table in schema.DETAILS:
                _remove_old(connection, table, now - self._detail_days * schema.DAY)
        for table in schema.SUMS:
            delete = f"DELETE FROM {table} WHERE span = ? AND start < ?"
            with transaction(connection):
                connection.execute(delete, (schema.HOUR, now - HOURS_KEPT))
                if self._retention_days:
                    before = now - self._retention_days * schema.DAY
                    connection.execute(delete, (schema.DAY, before))
                    # One goes when the last of its days has gone.
                    connection.execute(delete, (schema.MONTH, before - schema.MONTH))


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Return a connection to the database at *path*, private and with its tables, made if need be."""
    return open_shared_database(path, _make_tables)


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Return a connection that only reads the database at *path*.

    Raises:
        sqlite3.Error: There is none, or it cannot be read.
    """
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        version_of(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def set_aside(path: Path) -> None:
    """Give a damaged database another name, so that a new one can begin; of several processes one does it."""
    with hold_lock(path):
        try:
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("SELECT count(*) FROM runs").fetchone()
                damaged = connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
        except sqlite3.OperationalError:
            damaged = False  # another process has made a new one meanwhile, whose tables are not there yet
        except sqlite3.DatabaseError as error:
            damaged = _is_damage(error)
        if damaged:
            aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
            path.rename(aside)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            logger.warning("the statistics' database was damaged; it was set aside as %s", aside)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Do what the block does in one write, or not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _make_tables(connection: sqlite3.Connection) -> None:
    if version_of(connection) == schema.VERSION:
        return
    with transaction(connection):
        found = version_of(connection)  # another process may have been first
        if found == 0:
            for statement in schema.TABLES.split(";"):
                connection.execute(statement)
            for table in schema.DETAILS:
                connection.execute(f"CREATE INDEX {table}_by_time ON {table} (ts)")
        if 0 < found < schema.WITH_PRINCIPAL:
            _add_principals(connection)
        if 0 < found < schema.WITH_TOLERANCES:
            _create(connection, ["tolerance_sums"])
        if found == 1:
            connection.execute(schema.MONTHS_OF_DAYS)
        connection.execute(f"PRAGMA user_version = {schema.VERSION}")


def _add_principals(connection: sqlite3.Connection) -> None:
    """Give what an earlier release wrote to this process's user, who was the only one then."""
    for table in schema.DETAILS[:-1]:
        # A default costs nothing; to write it into every row might take a minute.
        connection.execute(f"ALTER TABLE {table} ADD COLUMN principal TEXT DEFAULT '{os_user()}'")
    sums = [table for table in schema.SUMS if table != "tolerance_sums"]  # which is younger
    for table in sums:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    _create(connection, sums)
    for table in sums:
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info(old_{table})")]
        rest = ", ".join(columns[2:])
        connection.execute(f"INSERT INTO {table} SELECT span, start, ?, {rest} FROM old_{table}", (os_user(),))
        connection.execute(f"DROP TABLE old_{table}")


def _create(connection: sqlite3.Connection, tables: Sequence[str]) -> None:
    for statement in schema.TABLES.split(";"):
        if any(f"CREATE TABLE {table} " in statement for table in tables):
            connection.execute(statement)


def version_of(connection: sqlite3.Connection) -> int:
    """Return the version of the tables, 0 when there are none.

    Raises:
        sqlite3.Error: It is one that we do not know.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > schema.VERSION:
        raise sqlite3.NotSupportedError(f"it was made by a newer release of OneTool (version {version})")
    return version


def _remove_old(connection: sqlite3.Connection, table: str, before: float) -> None:
    oldest = f"SELECT rowid FROM {table} WHERE ts < ? LIMIT {CLEAN_ROWS}"
    removed = CLEAN_ROWS
    while removed == CLEAN_ROWS:
        with transaction(connection):
            removed = connection.execute(f"DELETE FROM {table} WHERE rowid IN ({oldest})", (before,)).rowcount


def _details(rows: Sequence[StatsRow]) -> dict[str, list[tuple[object, ...]]]:
    found: defaultdict[str, list[tuple[object, ...]]] = defaultdict(list)
    for row in rows:
        if isinstance(row, ConnectionRow):
            found["connections"].append((row.ts, *row[2:], row.principal))
        else:
            # What was tolerated is only counted.
            table, place, end = ("runs", 7, -1) if isinstance(row, RunRow) else ("calls", 7, None)
            found[table].append((row.ts, *row[2:place], 0 if row.error_type else 1, *row[place:end], row.principal))
    return found


def _is_damage(error: sqlite3.Error) -> bool:
    return (getattr(error, "sqlite_errorcode", 0) & 0xFF) in DAMAGED


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
