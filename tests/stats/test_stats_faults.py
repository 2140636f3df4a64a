"""Faults of the area stats, each injected into real processes and files."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from ot.stats.figures import summary
from ot.stats.query import read_figures
from ot.stats.recorder import Recorder
from ot.stats.rows import StatsRow
from pace import PATIENCE, effort, wait_while, within
from stats.demo_rows import DAY, NOW
from stats.desk import ask, call, call_row, count, place, run_row, sink

TESTS = Path(__file__).parents[1]
WRITER = Path(__file__).with_name("stats_writer.py")


def fault(id: str) -> pytest.MarkDecorator:
    """Name the entry of the corpus that a test proves."""
    return pytest.mark.parametrize("fault", [pytest.param(id, id=id)])


def test_every_fault_of_the_area_is_injected_by_a_test() -> None:
    corpus = yaml.load((TESTS / "corpus" / "faults.yaml").read_text(), Loader=yaml.CSafeLoader)["faults"]
    ours = {entry["id"] for entry in corpus if entry["area"] == "stats"}
    assert ours == set(re.findall(r'@fault\("(\w+)"\)', Path(__file__).read_text()))


def start_writer(file: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, str(WRITER), str(file), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def write_at_once(file: Path, processes: int, rows: int, part: int) -> None:
    writers = [start_writer(file, rows, part) for _ in range(processes)]
    said = [writer.communicate(timeout=600)[0] for writer in writers]
    assert said == ["noted\n{'status': 'ok'}\n"] * processes
    assert count(file) == processes * rows
    for span in (3600, DAY):
        assert ask(file, f"SELECT sum(calls), sum(chars) FROM call_sums WHERE span = {span}") == [
            (processes * rows, processes * rows * 7)
        ]
        assert ask(file, f"SELECT sum(count) FROM times WHERE span = {span}") == [(processes * rows,)]
    assert ask(file, "PRAGMA integrity_check") == [("ok",)]
    uneven = f"SELECT run FROM calls GROUP BY run HAVING count(*) != {processes}"
    assert ask(file, uneven) == []


@fault("T01")
def test_processes_that_write_at_once_lose_and_tear_nothing(tmp_path: Path, fault: str) -> None:
    write_at_once(tmp_path / "stats.db", 4, 3000, 1000)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_eight_processes_write_fifty_thousand_rows_each(tmp_path: Path) -> None:
    write_at_once(tmp_path / "stats.db", 8, 50_000, 5_000)


@fault("T02")
def test_a_file_that_was_cut_off_is_set_aside_and_recording_goes_on(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "stats.db"
    first = Recorder(place(file))
    for _ in range(2000):
        first.finished(call())
    first.close()
    with file.open("r+b") as torn:
        torn.truncate(file.stat().st_size - 5000)
    second = Recorder(place(file))
    second.finished(call())
    second.close()
    assert second.health() == {"status": "ok"}
    assert ask(file, "PRAGMA integrity_check") == [("ok",)]
    assert count(file) == 1
    assert len(list(tmp_path.glob("stats.db.damaged-*"))) == 1


@fault("T03")
def test_a_file_of_something_else_is_set_aside(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "stats.db"
    file.write_text("[1,2]\n")
    with pytest.raises(OSError, match="cannot be read"):
        read_figures(file, "all", time.time())
    recorder = Recorder(place(file))
    recorder.finished(call())
    recorder.close()
    assert summary(read_figures(file, "all", time.time()))["total_calls"] == 1


@fault("T04")
def test_a_kill_loses_at_most_the_last_second(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "stats.db"
    writer = start_writer(file, 100, 10_000, "stay")
    try:
        assert writer.stdout
        assert writer.stdout.readline() == "noted\n"
        with within(5):  # the half second of the recorder, and a machine that others use too
            # All: on a busy machine, half a second may have been over before the last was noted.
            wait_while(lambda: not file.exists() or _count_of_other(file) < 100)
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=PATIENCE)
    assert count(file) == 100


def _count_of_other(file: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM calls").fetchone()[0]
    except sqlite3.Error:
        return 0  # it is just being made


FULL = """
import resource, sys
from pathlib import Path
from ot.config.models import Stats
from ot.execution.caller import Caller
from ot.execution.tool_executor import CallRecord
from ot.stats.recorder import Recorder, StatsPlace
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
recorder = Recorder(StatsPlace(Path(sys.argv[1]), Stats()))
for number in range(30_000):
    recorder.finished(CallRecord("t.f", Caller("me"), f"{number}", 0.001, "", 7, "worker"))
    if number == 3_000:
        recorder.flush(3)
recorder.flush(3)
bad = recorder.health()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
good = recorder.flush(60)
recorder.close()
print(bad["status"], bad["waiting"], bad["lost"] > 0, good, bad["lost"])
"""


@fault("T05")
def test_a_full_disk_stops_no_call_and_drops_are_counted(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "stats.db"
    ended = subprocess.run(
        [sys.executable, "-c", FULL, str(file)], capture_output=True, text=True, timeout=110, check=False
    )
    assert ended.returncode == 0, ended.stderr
    status, waiting, lost_some, written, lost = ended.stdout.split()
    assert (status, lost_some, written) == ("degraded", "True", "True")
    assert int(waiting) <= 10_000
    assert count(file) + int(lost) == 30_000
    assert ask(file, "PRAGMA integrity_check") == [("ok",)]


def many_rows(rows: int, tools: int) -> Iterator[list[StatsRow]]:
    """Yield about *rows* rows of the last year in batches, a run to four calls."""
    batch: list[StatsRow] = []
    for number in range(rows // 5):
        ts = NOW - 365 * DAY * (1 - number * 5 / rows)
        batch.append(run_row(ts, calls=4, tool_chars=4000, run=f"{number:x}", duration_ms=number % 997 + 1.0))
        batch += [
            call_row(ts, f"pack_{(number + n) % 40}.tool_{(number * 4 + n) % tools}", duration_ms=number % 503 + 0.5,
                     error_type="" if number % 50 else "ToolTimeout", run=f"{number:x}")
            for n in range(4)
        ]  # fmt: skip
        if len(batch) >= 50_000:
            yield batch
            batch = []
    yield batch


def check_answers(file: Path, rows: int) -> None:
    """Check that every question is answered exactly, and from few rows."""
    took: dict[str, Any] = {}
    for period in ("day", "week", "month", "all"):
        with effort() as spent:
            found = summary(read_figures(file, period, NOW))
        took[period] = round(spent.loops)
    assert found["total_calls"] == rows // 5 * 4
    assert found["runs"] == rows // 5
    assert max(took.values()) < 800, took


@fault("T06")
def test_a_question_reads_sums_and_not_rows(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    for batch in many_rows(100_000, tools=40):
        one.write(batch)
    one.close()
    check_answers(file, 100_000)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM calls")
        connection.execute("DELETE FROM runs")
        connection.commit()
    check_answers(file, 100_000)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_ten_million_rows_are_answered_as_quickly(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    for batch in many_rows(10_000_000, tools=120):
        one.write(batch)
    one.close()
    check_answers(file, 10_000_000)
    asking = (
        "import resource, sys; from pathlib import Path; from ot.stats.query import read_figures;"
        f"read_figures(Path(sys.argv[1]), 'all', {NOW});"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    out = subprocess.run([sys.executable, "-c", asking, str(file)], capture_output=True, text=True, check=True).stdout
    assert int(out) < 200 * 1024
