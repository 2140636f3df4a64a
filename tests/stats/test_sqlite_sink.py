"""The database of the statistics: sums that hold, files that break, what is removed when. The histogram of times."""

from __future__ import annotations

import random
import sqlite3
import stat
import statistics
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ot.config.principal import os_user
from ot.files import shared_database
from ot.stats.figures import summary
from ot.stats.query import read_figures
from ot.stats.rows import ConnectionRow
from ot.stats.schema import DETAILS, LAST_BUCKET, SUMS, bucket_of, percentile, upper_edge
from ot.stats.sqlite_sink import open_for_writing
from stats.demo_rows import DAY, NOW, demo_rows
from stats.desk import ask, call_row, count, run_row, sink


def test_rows_and_their_sums_are_there_together(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    rows = list(demo_rows(days=3, runs_a_day=20))
    half = len(rows) // 2
    one.write(rows[:half])
    one.write(rows[half:])
    one.close()
    for span in (3600, 86_400):
        where = f"WHERE span = {span}"
        assert ask(file, f"SELECT sum(calls), sum(errors), sum(chars) FROM call_sums {where}") == ask(
            file, "SELECT count(*), sum(1 - success), sum(chars_returned) FROM calls"
        )
        assert ask(file, f"SELECT sum(runs), sum(chars_out), sum(calls) FROM run_sums {where}") == ask(
            file, "SELECT count(*), sum(chars_out), sum(calls) FROM runs"
        )
    for span in (3600, 86_400, 30 * 86_400):
        where = f"WHERE span = {span}"
        assert ask(file, f"SELECT sum(count) FROM times {where} AND tool = ''") == [(count(file, "runs"),)]
    assert ask(file, "SELECT sum(flat_chars) FROM connection_sums WHERE span = 3600") == ask(
        file, "SELECT sum(flat_chars) FROM connections"
    )


def test_the_file_and_its_directory_are_private(tmp_path: Path) -> None:
    file = tmp_path / "stats" / "stats.db"
    one = sink(file)
    one.write([run_row()])
    for path in (file, *file.parent.glob("stats.db-*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    one.close()


@pytest.mark.parametrize("content", [b"[1,2]\n", b"not a database at all" * 500, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_file_that_is_no_database_is_set_aside_and_a_new_one_begins(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "stats.db"
    file.write_bytes(content)
    one = sink(file)
    one.write([call_row()])
    one.close()
    (aside,) = tmp_path.glob("stats.db.damaged-*")
    assert aside.read_bytes() == content
    assert count(file) == 1


def test_a_database_that_breaks_while_it_is_open_is_set_aside(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row() for _ in range(500)])
    one.close()
    damaged = bytearray(file.read_bytes())
    damaged[1000:] = b"\x55" * (len(damaged) - 1000)
    file.write_bytes(damaged)
    one.write([call_row()])
    one.close()
    assert count(file) == 1


def test_rows_are_kept_once_also_when_old_ones_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_database, "BUSY_SECONDS", 0.05)
    file = tmp_path / "stats.db"
    open_for_writing(file).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as other:

        def clock() -> float:
            # Asked between the writing and the removing: there another server begins to write.
            if not other.in_transaction:
                other.execute("BEGIN IMMEDIATE")
            return NOW

        one = sink(file, retention_days=1, clock=clock)
        one.write([call_row()])
        other.execute("ROLLBACK")
    one.close()
    assert count(file) == 1


def test_a_torn_journal_costs_only_what_was_not_committed(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row()])
    one.write([call_row()])
    journal = file.with_name("stats.db-wal")
    kept, torn = file.read_bytes(), journal.read_bytes()[:-100]
    one.close()
    file.write_bytes(kept)
    journal.write_bytes(torn)
    again = sink(file)
    again.write([call_row()])
    again.close()
    assert count(file) == 2


def test_a_file_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row()])
    for path in tmp_path.iterdir():
        path.unlink()
    one.write([call_row()])
    one.close()
    assert count(file) == 1


def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    connection = open_for_writing(file)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(OSError, match="newer release"):
        sink(file).write([call_row()])
    with pytest.raises(OSError, match="newer release"):
        read_figures(file, "all", NOW)
    assert list(tmp_path.glob("*.damaged-*")) == []


def test_a_link_in_the_files_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "stats.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic link"):
        sink(tmp_path / "stats.db").write([call_row()])
    assert not (tmp_path / "elsewhere").exists()


def test_a_locked_database_is_an_error_and_no_row_is_kept_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_database, "BUSY_SECONDS", 0.05)
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row()])
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OSError, match="locked"):
        one.write([call_row()])
    other.execute("ROLLBACK")
    other.close()
    one.write([call_row()])
    one.close()
    assert count(file) == 2


def test_old_rows_go_and_sums_stay_as_long_as_they_are_to(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    old = sink(file, clock=lambda: NOW - 100 * DAY)
    old.write([call_row(NOW - 100 * DAY), run_row(NOW - 100 * DAY), ConnectionRow(NOW - 100 * DAY, "me", "c", 10, 1)])
    old.close()
    new = sink(file, detail_days=30, retention_days=400, clock=lambda: NOW)
    new.write([call_row(NOW - 1)])
    new.close()
    assert (count(file), count(file, "runs"), count(file, "connections")) == (1, 0, 0)
    assert ask(file, "SELECT count(*) FROM call_sums WHERE span = 3600") == [(1,)]
    assert read_figures(file, "all", NOW).tools[0].calls == 2
    last = sink(file, detail_days=30, retention_days=50, clock=lambda: NOW)
    last.write([])
    last.close()
    assert read_figures(file, "all", NOW).tools[0].calls == 1
    assert ask(file, f"SELECT count(*) FROM times WHERE start < {NOW - 80 * DAY}") == [(0,)]


def test_times_of_all_days_are_those_of_every_row(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(NOW - day * DAY, duration_ms=100.0 if day < 80 else 5000.0) for day in range(100)])
    one.close()
    check_times(file)


def test_times_of_a_database_without_sums_by_month_are_found_and_then_summed(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(NOW - day * DAY, duration_ms=100.0 if day < 80 else 5000.0) for day in range(100)])
    one.close()
    file = without_principals(file)
    with closing(sqlite3.connect(file)) as old:
        old.executescript(f"DELETE FROM times WHERE span = {30 * DAY}; PRAGMA user_version = 1")
    check_times(file)
    two = sink(file)
    two.write([call_row(NOW, duration_ms=100.0)])
    two.close()
    assert ask(file, "PRAGMA user_version") == [(4,)]
    assert ask(file, f"SELECT sum(count) FROM times WHERE span = {30 * DAY}") == [(101,)]
    check_times(file)


def test_what_was_written_before_each_row_said_whose_it_is_is_this_user_s(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(NOW), run_row(NOW, calls=1), ConnectionRow(NOW, "me", "c", 10, 1)])
    one.close()
    file = without_principals(file)
    for _ in range(2):  # before anything new is written, and after
        mine, others = (read_figures(file, "all", NOW, principal=who) for who in (os_user(), "someone"))
        assert (mine.runs["runs"], mine.runs["connections"], len(mine.tools)) == (1, 1, 1)
        assert (others.runs["runs"], others.runs["connections"], len(others.tools)) == (0, 0, 0)
        two = sink(file)
        two.write([])
        two.close()
    assert ask(file, "SELECT principal FROM calls UNION SELECT principal FROM times") == [(os_user(),)]


def test_figures_are_of_all_principals_or_of_one(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([run_row(NOW, principal="ann"), call_row(NOW, principal="ann"), run_row(NOW, principal="bob")])
    one.close()
    found = {who: read_figures(file, "all", NOW, principal=who) for who in ("", "ann", "bob", "eve")}
    assert {who: (figures.runs["runs"], len(figures.tools)) for who, figures in found.items()} == {
        "": (2, 1), "ann": (1, 1), "bob": (1, 0), "eve": (0, 0),
    }  # fmt: skip


def test_what_was_tolerated_is_counted_by_its_row_of_the_table(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([run_row(NOW, tolerated=("prose", "json")), run_row(NOW, tolerated=("prose",)), run_row(NOW)])
    one.close()
    figures = read_figures(file, "day", NOW)
    assert figures.tolerated == {"prose": 2, "json": 1}
    assert summary(figures)["tolerated"] == {"prose": 2, "json": 1}
    assert "tolerated" not in summary(read_figures(file, "day", NOW, principal="someone"))


def test_a_database_that_counted_no_tolerances_is_read_and_then_counts_them(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([run_row(NOW)])
    one.close()
    with closing(sqlite3.connect(file)) as old:
        old.executescript("DROP TABLE tolerance_sums; PRAGMA user_version = 3")
    assert read_figures(file, "all", NOW).tolerated == {}
    two = sink(file)
    two.write([run_row(NOW, tolerated=("prose",))])
    two.close()
    figures = read_figures(file, "all", NOW)
    assert (figures.runs["runs"], figures.tolerated) == (2, {"prose": 1})


def without_principals(file: Path) -> Path:
    """Return a copy of the database as the release before would have written it."""
    old = file.with_name("old.db")
    with closing(sqlite3.connect(old)) as connection:
        connection.executescript((Path(__file__).parent / "version_2.sql").read_text())
        connection.execute("ATTACH ? AS new", (str(file),))
        for table in (*DETAILS, *SUMS.keys() - {"tolerance_sums"}):
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}")
        connection.commit()
    return old


def check_times(file: Path) -> None:
    """Hold the times of a month, which were all short, and those of all days, some of which were long."""
    for period, p95 in (("month", 100.0), ("all", 5000.0)):
        (tool,) = read_figures(file, period, NOW).tools
        assert tool.p50_ms == pytest.approx(100.0, rel=0.1)
        assert tool.p95_ms == pytest.approx(p95, rel=0.1)


@given(st.floats(0, 1e6))
def test_a_time_lies_in_its_bucket(ms: float) -> None:
    bucket = bucket_of(ms)
    assert 0 <= bucket <= LAST_BUCKET
    assert ms <= upper_edge(bucket) * 1.000001
    assert bucket == 0 or ms >= upper_edge(bucket - 1) * 0.999999


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_an_estimate_is_within_a_fifth_of_the_truth(share: float) -> None:
    chance = random.Random(3)
    times = [chance.lognormvariate(4, 1.5) for _ in range(5000)]
    truth = statistics.quantiles(times, n=100)[round(share * 100) - 1]
    assert percentile(Counter(map(bucket_of, times)), share) == pytest.approx(truth, rel=0.1)


def test_nothing_measured_is_no_time() -> None:
    assert percentile({}, 0.95) == 0.0
