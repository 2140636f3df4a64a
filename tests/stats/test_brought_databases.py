"""A database of statistics that came with a repository is data: nothing in it runs."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ot.stats import own_tables
from ot.stats.query import read_figures
from ot.stats.sqlite_sink import open_for_writing
from stats.demo_rows import NOW
from stats.desk import call_row, count, sink

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
BROUGHT = {
    "trigger": f"CREATE TRIGGER t AFTER INSERT ON calls BEGIN INSERT INTO losses SELECT 1, ({ENDLESS}); END",
    "view": f"DROP TABLE run_sums; CREATE VIEW run_sums AS {ENDLESS}",
    "check": "DROP TABLE losses; CREATE TABLE losses (ts REAL, rows INTEGER, CHECK (length(randomblob(1e8)) > 0))",
    "table": "CREATE TABLE more (x)",
    "index": "CREATE INDEX i ON calls (abs(ts))",
}


@pytest.mark.parametrize("kind", BROUGHT)
def test_what_we_did_not_make_is_not_used_and_set_aside(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "stats.db"
    open_for_writing(file).close()
    with closing(sqlite3.connect(file)) as brought:
        brought.executescript(BROUGHT[kind])
    with pytest.raises(OSError, match="that OneTool did not make"):
        read_figures(file, "all", NOW)
    one = sink(file)
    one.write([call_row()])
    one.close()
    assert count(file) == 1
    assert len(list(tmp_path.glob("stats.db.damaged-*"))) == 1


def test_a_text_in_a_numbers_place_is_said_and_not_raised(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row()])
    one.close()
    with closing(sqlite3.connect(file)) as brought:
        brought.execute("UPDATE times SET bucket = 'x'")
        brought.commit()
    with pytest.raises(OSError, match="cannot be read"):
        read_figures(file, "all", NOW)


def test_a_reading_that_would_take_for_ever_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(tool=f"t.f{number}") for number in range(500)])
    one.close()
    monkeypatch.setattr(own_tables, "STEPS", 10)
    monkeypatch.setattr(own_tables, "MOST_STEPS", 1000)
    with pytest.raises(OSError, match="interrupted"):
        read_figures(file, "all", NOW)


def test_a_pipe_in_the_files_place_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stats.db")
    with pytest.raises(OSError, match="not a regular file"):
        read_figures(tmp_path / "stats.db", "all", NOW, below=tmp_path)
