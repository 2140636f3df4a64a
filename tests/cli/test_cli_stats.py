"""onetool stats and onetool logs: what a user sees of what was done. The bench, as a user types it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from benchmarks.bench import main

from bench.suites import ALL_PRICES, BUY, shop
from chat.chat_desk import calls, text
from chat.wire_server import serving_aside
from cli.command import OneTool
from ot.cli import logs
from ot.cli.exit_codes import BACKEND


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


def test_the_command_stats_writes_a_report(onetool: OneTool) -> None:
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


@pytest.fixture
def suite(onetool: OneTool) -> Path:
    """A file of tasks, and a user who has the shop."""
    shop(onetool.home)
    file = onetool.cwd / "tasks.yaml"
    file.write_text(yaml.safe_dump(json.loads(json.dumps({"tasks": [ALL_PRICES.model_dump()]}))))
    return file


def test_without_tasks_the_definitions_are_counted_four_ways(onetool: OneTool, suite: Path) -> None:
    ended = onetool.call(main, "bench")
    assert ended.code == 0
    first, _, head, *lines = ended.out.splitlines()
    assert first == "3 tools of 1 server; tokens are bytes / 4"
    assert head.split() == ["way", "listed", "definitions"]
    assert [line.split()[:2] for line in lines] == [
        ["flat", "3"], ["search", "2"], ["codemode", "3"], ["onetool", "1"]
    ]  # fmt: skip


def test_tasks_are_played_by_script_and_the_output_says_so(onetool: OneTool, suite: Path) -> None:
    ended = onetool.call(main, "bench", str(suite), "--ways", "flat,onetool")
    assert ended.code == 0
    assert "Scripted, not by a model:" in ended.out
    found = json.loads(onetool.call(main, "bench", str(suite), "--ways", "flat,onetool", "--json").out)
    assert [(row["task"], row["way"], row["round_trips"]) for row in found["tasks"]] == [
        ("dearest", "flat", 3), ("dearest", "onetool", 3)
    ]  # fmt: skip
    assert found["servers"] == {"shop": 3}


def test_a_script_that_fails_ends_with_one_and_says_what_to_allow(onetool: OneTool, suite: Path) -> None:
    suite.write_text(yaml.safe_dump(json.loads(json.dumps({"tasks": [BUY.model_dump()]}))))
    ended = onetool.call(main, "bench", str(suite), "--ways", "flat")
    assert ended.code == 1
    assert "not solved: buy by flat: shop_buy: " in ended.out
    assert "onetool allow shop.buy" in ended.out


def test_a_model_solves_the_tasks_where_one_is_named(onetool: OneTool, suite: Path) -> None:
    script = calls("ollama", ("run", {"command": ALL_PRICES.program[0]})), text("ollama", "saffron")
    with serving_aside(*script) as wire:
        config = onetool.user / "onetool.yaml"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"chat": {"ollama_url": wire.url}}))
        asked = ("--provider", "ollama", "--model", "small", "--ways", "onetool", "--repeat", "2", "--json")
        ended = onetool.call(main, "bench", str(suite), *asked)
    assert ended.code == 0
    found = json.loads(ended.out)
    assert (found["models"][0]["model"], found["models"][0]["passed"]) == ("small", 2)
    assert [attempt["task"] for attempt in found["attempts"]] == ["dearest"] * 2
    assert "tasks" not in found


def test_a_model_whose_service_is_away_has_not_failed_its_tasks(onetool: OneTool, suite: Path) -> None:
    config = onetool.user / "onetool.yaml"
    # Nothing listens on the port of discarded bytes.
    config.write_text(json.dumps(json.loads(config.read_text()) | {"chat": {"ollama_url": "http://127.0.0.1:9"}}))
    ended = onetool.call(main, "bench", str(suite), "--provider", "ollama", "--model", "small")
    assert (ended.code, ended.out) == (BACKEND, "")
    assert "no connection to http://127.0.0.1:9" in ended.err


def test_a_server_that_is_unavailable_is_left_out_and_named(onetool: OneTool) -> None:
    onetool.user.mkdir()
    servers = {"gone": {"command": "no-such-program-anywhere"}}
    (onetool.user / "onetool.yaml").write_text(json.dumps({"servers": servers}))
    ended = onetool.call(main, "bench")
    assert ended.code == 1
    assert "left out: gone: " in ended.err
    assert "no-such-program-anywhere" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["nothing.yaml"], 3, "there is no suite nothing.yaml"),
        (["--model", "small"], 2, "--model needs a suite"),
        (["--ways", "flat,sharp"], 2, "unknown: sharp"),
    ],
)
def test_what_is_asked_wrongly_is_refused(onetool: OneTool, arguments: list[str], code: int, why: str) -> None:
    ended = onetool.call(main, "bench", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert why in " ".join(ended.err.split())
