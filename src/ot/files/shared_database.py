"""A SQLite file, private to its user, that several processes write at the same time."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from ot.files.no_links import NO_LINK, make_private

BUSY_SECONDS = 5.0
PAUSE_SECONDS = 0.01


def open_shared_database(
    path: Path, make_tables: Callable[[sqlite3.Connection], None], *, power: bool = False
) -> sqlite3.Connection:
    """Return a connection to *path* in autocommit mode, for any thread, on which *make_tables* was called.

    A crash of the process loses nothing that was written; with *power*, neither does a loss of power.
    """
    make_private(path.parent)
    # SQLite gives its side files the mode of the file itself.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        _write_ahead(connection)
        connection.execute(f"PRAGMA synchronous = {'FULL' if power else 'NORMAL'}")
        connection.execute("PRAGMA trusted_schema = OFF")
        make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Use the write-ahead log; SQLite does not wait for another process that makes the same new file."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(PAUSE_SECONDS)
