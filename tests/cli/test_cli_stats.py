"""onetool stats and onetool logs: what a user sees of what was done."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cli.command import OneTool
from ot.cli import logs


def test_what_was_run_is_shown_as_a_table(onetool: OneTool) -> None:
    (onetool.cwd / "a.txt").write_text("hello")
    onetool("run", "[file.read(path='a.txt') for _ in range(3)]")
    onetool("run", "file.read(path='missing')")
    ended = onetool("stats")
    assert ended.code == 0
    assert "2 runs, 4 calls, 75.0 % succeeded" in ended.out
    (line,) = [line for line in ended.out.splitlines() if line.startswith("file.read")]
    assert line.split()[1:3] == ["4", "75.0"]
    assert line.rstrip().endswith("█")
    assert "calls beyond the first of their run x 2,000 ms" in " ".join(ended.out.split())


def test_the_figures_can_be_had_as_json_and_for_one_tool(onetool: OneTool) -> None:
    onetool("run", "ot.version()\n[file.glob(pattern='*'), file.glob(pattern='*')]")
    found = json.loads(onetool("stats", "--json", "--period", "day").out)
    assert (found["runs"], found["total_calls"], found["period"]) == (1, 3, "day")
    assert json.loads(onetool("stats", "--json", "--tool", "file").out)["total_calls"] == 2


def test_a_report_is_written(onetool: OneTool) -> None:
    onetool("run", "file.glob(pattern='*')")
    ended = onetool("stats", "--html", "report.html")
    assert (ended.code, ended.out, ended.err) == (0, "", "wrote report.html\n")
    assert "file.glob" in (onetool.cwd / "report.html").read_text()
    ended = onetool("stats", "--html", "none/report.html")
    assert (ended.code, ended.err) == (1, "onetool: cannot write none/report.html: No such file or directory\n")


def test_wrong_periods_and_disabled_statistics_are_told(onetool: OneTool) -> None:
    ended = onetool("stats", "--period", "year")
    assert ended.code == 2
    assert "day, week, month, all" in " ".join(ended.err.split())
    onetool.user.mkdir()
    (onetool.user / "onetool.yaml").write_text("stats: {enabled: false}\n")
    ended = onetool("stats")
    assert ended.code == 1
    assert "disabled" in ended.err


def test_a_name_of_a_tool_is_no_markup(onetool: OneTool) -> None:
    from stats.desk import call_row, sink

    one = sink(onetool.user / "stats" / "stats.db")
    one.write([call_row(time.time(), "[red]x[/red].[bold]f")])
    one.close()
    assert "[red]x[/red].[bold]f" in onetool("stats").out


def test_the_log_is_shown_filtered_and_as_json(onetool: OneTool) -> None:
    run = json.loads(onetool("run", "file.read(path='missing')", "--json").out)["meta"]["run"]
    onetool("run", "1 + 1")
    lines = onetool("logs").out.splitlines()
    assert len([line for line in lines if "runner.execute" in line]) == 2
    mine = onetool("logs", "--run", run).out.splitlines()
    assert len(mine) == 2
    assert "tool.call FAILED" in mine[0]
    assert "tool=file.read" in mine[0]
    assert onetool("logs", "--level", "warning").out.splitlines() == mine[:1]
    assert [json.loads(line)["span"] for line in onetool("logs", "--json", "--run", run).out.splitlines()] == [
        "tool.call",
        "runner.execute",
    ]
    assert onetool("logs", "--since", "1h").out.splitlines() == lines
    assert onetool("logs", "--since", "0s").out == ""


def test_wrong_questions_to_the_log_are_refused(onetool: OneTool) -> None:
    assert onetool("logs", "--since", "soon").code == 2
    assert onetool("logs", "--level", "LOUD").code == 2
    ended = onetool("logs")
    assert ended.code == 0
    assert "there is no log yet" in ended.err


def test_the_log_can_be_followed_over_the_change_of_files(onetool: OneTool) -> None:
    from ot.cli.logs import LogTail
    from ot.logs import LogFile

    path = onetool.cwd / "l.log"
    file = LogFile(path, max_bytes=100, files=3)
    file.write("before\n")
    with LogTail(path) as tail:
        assert tail.read() == ["before"]
        file.write("one\ntw")
        assert tail.read() == ["one"]
        file.write("o\n")
        assert tail.read() == ["two"]
        file.write("x" * 99 + "\n")
        assert tail.read() == []
        assert tail.read() == ["x" * 99]
    file.close()


def test_a_run_that_goes_well_says_nothing_on_standard_error(onetool: OneTool) -> None:
    ended = onetool.process("run", "ot.version()")
    assert (ended.code, ended.err) == (0, "")


def test_whoever_follows_the_log_misses_no_line_whenever_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "onetool.log"
    steps = iter([lambda: path.write_text("first\n"), lambda: path.write_text("first\nsecond\n")])
    monkeypatch.setattr(logs.time, "sleep", lambda _: next(steps)())  # what comes while it waits
    following = logs._lines(path, follow=True)  # pyright: ignore[reportPrivateUsage] - the command itself has no end
    assert [next(following), next(following)] == ["first", "second"]


def test_whoever_follows_the_log_is_shown_what_is_there_once_and_the_oldest_first(tmp_path: Path) -> None:
    path = tmp_path / "onetool.log"
    for number in (1, 2):
        path.with_name(f"onetool.log.{number}").write_text(f"old {number}\n")
    path.write_text("new a\nnew b\n")
    following = logs._lines(path, follow=True)  # pyright: ignore[reportPrivateUsage] - as above
    shown = [next(following) for _ in range(4)]
    assert shown == ["old 2", "old 1", "new a", "new b"]
