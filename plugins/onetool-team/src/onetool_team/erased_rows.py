"""Reads and erases rows of the SQLite files that servers write at the same time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from ot.files.shared_database import open_shared_database


def read_rows(file: Path, question: str, *given: object) -> list[tuple[Any, ...]]:
    """Return the answer to *question*, or nothing where there is no file yet.

    Raises:
        OSError: The file cannot be read.
    """
    if not file.exists():
        return []
    try:
        with closing(_open(file)) as connection:
            return connection.execute(question, given).fetchall()
    except sqlite3.Error as error:
        raise OSError(f"{file}: {error}") from error


def erase_rows(file: Path, tables: Iterable[str], principal: str) -> None:
    """Delete the rows of *principal* in *tables*, and every byte of theirs from the file.

    Raises:
        OSError: The file cannot be written.
    """
    if not file.exists():
        return
    try:
        with closing(_open(file)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for table in tables:
                connection.execute(f"DELETE FROM {table} WHERE principal = ?", (principal,))
            connection.execute("COMMIT")
            # What was deleted, now or at any time before, is still in free pages and in the write-ahead log.
            connection.execute("VACUUM")
            (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if is_busy:
                raise OSError(f"{file}: another process reads it all the while, and its log still has what was erased")
    except sqlite3.Error as error:
        raise OSError(f"{file}: {error}") from error


def _open(file: Path) -> sqlite3.Connection:
    return open_shared_database(file, lambda connection: None)
