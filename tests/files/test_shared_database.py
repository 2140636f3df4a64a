"""A database that several processes make and write at the same time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ot.files import shared_database
from ot.files.shared_database import open_shared_database


def make_tables(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS t (x)")


@pytest.fixture
def held(tmp_path: Path) -> sqlite3.Connection:
    """Another process's connection, which is making the file."""
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_who_opens_a_file_that_another_one_is_making_waits_for_it(
    tmp_path: Path, held: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        held.execute("COMMIT")

    monkeypatch.setattr(shared_database.time, "sleep", pause)
    with closing(held), closing(open_shared_database(tmp_path / "a.db", make_tables)) as opened:
        assert opened.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert len(pauses) == 1


def test_who_has_waited_long_enough_is_told(
    tmp_path: Path, held: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_database, "BUSY_SECONDS", 0.05)
    with closing(held), pytest.raises(sqlite3.OperationalError, match="locked"):
        open_shared_database(tmp_path / "a.db", make_tables)
