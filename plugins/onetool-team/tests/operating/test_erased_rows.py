"""Rows that are erased leave no byte in a SQLite file, not even those that were deleted long before."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from onetool_team.erased_rows import erase_rows, read_rows

ROWS = [("ann", f"canary-{n}") for n in range(500)] + [("bob", f"kept-{n}") for n in range(500)]


def bytes_of(file: Path) -> bytes:
    """Return what is in the file and in those beside it."""
    return b"".join(path.read_bytes() for path in file.parent.glob(f"{file.name}*"))


def test_no_byte_is_left_of_rows_that_are_erased_or_were_deleted_before(tmp_path: Path) -> None:
    file = tmp_path / "rows.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = OFF")
        connection.execute("CREATE TABLE rows (principal TEXT, text TEXT)")
        connection.executemany("INSERT INTO rows VALUES (?, ?)", ROWS)
        connection.commit()
        connection.execute("DELETE FROM rows WHERE text LIKE 'canary-1%'")
        connection.commit()
        assert b"canary-1" in bytes_of(file)
        erase_rows(file, ["rows"], "ann")
        assert b"canary" not in bytes_of(file)
        assert read_rows(file, "SELECT count(*) FROM rows") == [(500,)]


def test_a_reader_that_holds_the_old_rows_is_told_of(tmp_path: Path) -> None:
    file = tmp_path / "rows.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as writer, closing(sqlite3.connect(file)) as reader:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE rows (principal TEXT, text TEXT)")
        writer.executemany("INSERT INTO rows VALUES (?, ?)", ROWS)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM rows").fetchone()
        with pytest.raises(OSError, match=r"another process reads it|locked"):
            erase_rows(file, ["rows"], "ann")


def test_where_nothing_was_written_there_is_nothing_to_erase(tmp_path: Path) -> None:
    erase_rows(tmp_path / "none.db", ["rows"], "ann")
    assert read_rows(tmp_path / "none.db", "SELECT * FROM rows") == []
    assert not list(tmp_path.iterdir())
