"""Sees that a database holds our own tables and nothing that would run: a repository may have brought the file."""

from __future__ import annotations

import sqlite3
from functools import cache
from itertools import count

from ot.stats.schema import DETAILS, TABLES

STEPS = 100_000
MOST_STEPS = 500_000_000
"""Steps of SQLite's machine that one reading may take; a year's sums take a hundredth of it."""
LISTED = 100


class ForeignTables(sqlite3.DatabaseError):
    """The database holds something that OneTool did not make."""


def defend(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Return *connection* with triggers, views and functions named in the file switched off."""
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def bound_reading(connection: sqlite3.Connection) -> None:
    """Interrupt *connection* when it has read far more than any statistics of ours."""
    calls = count(1)
    connection.set_progress_handler(lambda: next(calls) * STEPS > MOST_STEPS, STEPS)


def check_tables(connection: sqlite3.Connection) -> None:
    """Refuse a database with anything but our own tables, as we make them, and their indexes.

    Raises:
        ForeignTables: It holds something else.
    """
    found = connection.execute(f"SELECT type, name, sql FROM sqlite_schema LIMIT {LISTED}").fetchall()
    for kind, name, _ in set(found) - _own():
        raise ForeignTables(f"it holds a {kind}, {str(name)[:40]!r}, that OneTool did not make")


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables and indexes in an empty database."""
    for statement in TABLES.split(";"):
        connection.execute(statement)
    for table in DETAILS:
        connection.execute(f"CREATE INDEX {table}_by_time ON {table} (ts)")


@cache
def _own() -> frozenset[tuple[str, str, str]]:
    connection = sqlite3.connect(":memory:")
    try:
        make_tables(connection)
        return frozenset(connection.execute("SELECT type, name, sql FROM sqlite_schema"))
    finally:
        connection.close()
