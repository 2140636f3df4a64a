"""Statistics: what is recorded, and what is asked of it."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ot.errors import ToolUnavailable
from ot.execution.caller import Caller
from ot.registry.tool import Parameter, Tool
from ot.registry.tool_registry import Pack, ToolRegistry
from ot.stats import query
from ot.stats import recorder as recorder_module
from ot.stats.figures import PERIODS, Savings, summary
from ot.stats.query import read_figures
from ot.stats.recorder import Recorder, definition, flat_chars
from ot.stats.rows import ConnectionRow
from pace import PATIENCE
from stats.demo_rows import DAY, NOW, demo_database, demo_rows
from stats.desk import ask, call, call_row, count, place, run_row, sink


def test_runs_and_calls_are_written_within_a_second(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = Recorder(place(file))
    one.run_finished(run_row(time.time()))
    one.finished(call(error="ValueError"))
    assert one.flush(PATIENCE)
    assert ask(file, "SELECT tool, pack, success, error_type, chars_returned, source FROM calls") == [
        ("t.f", "t", 0, "ValueError", 10, "worker")
    ]
    assert count(file, "runs") == 1
    one.close()
    assert recorder_module.FLUSH_SECONDS <= 1


def test_nothing_is_touched_when_statistics_are_off(tmp_path: Path) -> None:
    one = Recorder(place(tmp_path / "stats.db", enabled=False))
    one.run_finished(run_row())
    one.finished(call())
    one.note_client(Caller("me", client="client"), lambda: 1, 1)
    one.close()
    assert list(tmp_path.iterdir()) == []
    assert one.health() == {"status": "disabled"}


def test_statistics_can_move_to_another_file_at_a_reload(tmp_path: Path) -> None:
    one = Recorder(place(tmp_path / "a.db"))
    one.finished(call())
    assert one.flush(PATIENCE)
    one.move(place(tmp_path / "b.db"))
    one.finished(call())
    one.close()
    assert (count(tmp_path / "a.db"), count(tmp_path / "b.db")) == (1, 1)


def test_a_client_is_weighed_once_and_off_the_loop(tmp_path: Path) -> None:
    asked: list[str] = []

    def flat() -> int:
        asked.append(threading.current_thread().name)
        return 5000

    one = Recorder(place(tmp_path / "stats.db"))
    for _ in range(3):
        one.note_client(Caller("me", client="claude"), flat, 700)
    one.close()
    assert asked == ["ot-stats-flat"]
    assert ask(tmp_path / "stats.db", "SELECT client, flat_chars, our_chars FROM connections") == [
        ("claude", 5000, 700)
    ]


def test_tools_that_do_not_exist_share_one_name(tmp_path: Path) -> None:
    one = Recorder(place(tmp_path / "stats.db"))
    for number in range(5):
        one.finished(call(f"made.up_{number}", error="UnknownTool", source=""))
    one.close()
    assert ask(tmp_path / "stats.db", "SELECT DISTINCT tool FROM calls") == [("(unknown)",)]


def test_a_place_that_cannot_be_written_fails_no_call_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    one = Recorder(place(blocked / "stats.db"))
    for _ in range(10_050):
        one.finished(call())
    assert not one.flush(2)
    health: dict[str, Any] = one.health()
    assert (health["status"], health["waiting"], health["lost"]) == ("degraded", 10_000, 50)
    assert "file" in health["error"]
    blocked.unlink()
    assert one.flush(PATIENCE)
    one.finished(call())
    one.close()
    assert count(blocked / "stats.db") == 10_001
    assert read_figures(blocked / "stats.db", "all", NOW * 2).lost == 50
    assert one.health() == {"status": "ok", "lost": 50}


# ---------------------------------------------------------------- what a flat list of all tools would take

QUERY = Parameter("query", "keyword", "str", None, "What to look for.")
COUNT = Parameter("count", "keyword", "int", "5")
TOOL = Tool("brave", "search", (QUERY, COUNT), doc="Search the web.")


def broken() -> list[Tool]:
    raise ToolUnavailable("bad", "it cannot be read")


def test_a_definition_is_what_a_client_would_list() -> None:
    assert definition(TOOL) == {
        "name": "brave_search",
        "description": "Search the web.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for."},
                "count": {"type": "integer"},
            },
            "required": ["query"],
        },
    }
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    assert definition(Tool("p", "t", input_schema=schema))["inputSchema"] == schema


def test_all_packs_count_but_bundled_ones_and_those_that_cannot_be_read() -> None:
    packs = [
        Pack("brave", "local", lambda: [TOOL, TOOL]),
        Pack("ot", "local", lambda: [TOOL], bundled=True),
        Pack("bad", "x", broken),
    ]
    assert flat_chars(ToolRegistry(packs)) == 2 * len(json.dumps(definition(TOOL)))


def test_packs_that_nobody_used_are_not_kept_in_memory() -> None:
    pack = Pack("brave", "local", lambda: [TOOL])
    flat_chars(ToolRegistry([pack]))
    assert "tools" not in vars(pack)


HOUR = 3600


def test_without_a_database_everything_is_zero(tmp_path: Path) -> None:
    found = summary(read_figures(tmp_path / "none.db", "all", NOW))
    assert (found["total_calls"], found["success_rate"], found["context_saved"], found["tools"]) == (0, 100.0, 0, [])
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(("period", "calls"), [("day", 1), ("week", 2), ("month", 3), ("all", 4)])
def test_a_period_counts_what_lies_in_it(tmp_path: Path, period: str, calls: int) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(NOW - ago) for ago in (HOUR, 3 * DAY, 20 * DAY, 200 * DAY)], 0)
    one.close()
    assert sum(tool.calls for tool in read_figures(file, period, NOW).tools) == calls
    assert set(PERIODS) == {"day", "week", "month", "all"}


def test_one_tool_or_one_pack_can_be_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(NOW, name) for name in ("brave.search", "brave.search", "brave.image", "bravely.x", "br%.y")])
    one.close()

    def tools(tool: str) -> dict[str, int]:
        return {found.tool: found.calls for found in read_figures(file, "all", NOW, tool=tool).tools}

    assert tools("brave.search") == {"brave.search": 2}
    assert tools("brave") == {"brave.search": 2, "brave.image": 1}
    assert tools("b%") == {}
    assert "context_saved" not in summary(read_figures(file, "all", NOW, tool="brave"), tool="brave")


def test_savings_are_what_really_stayed_out(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write(
        [
            ConnectionRow(NOW, "me", "c", 50_000, 2_000),
            run_row(NOW, calls=5, tool_chars=9_000, chars_out=1_000),  # 8,000 stayed in the program
            run_row(NOW, calls=1, tool_chars=100, chars_out=300),  # wrote more than it was given: nothing was kept out
            run_row(NOW, calls=1, ot_chars=4_000, chars_out=4_000),  # read a page of a stored result back
            run_row(NOW, calls=0, chars_out=10),
        ]
    )
    one.close()
    figures = read_figures(file, "all", NOW)
    savings = Savings.of(figures)
    assert (savings.definitions, savings.results, savings.composed) == (48_000, 4_000, 4)
    found = summary(figures)
    assert (found["context_saved"], found["time_saved_ms"]) == (13_000, 8_000)
    formula = "(48,000 characters of definitions not sent + 4,000 of results not returned) / 4"
    assert found["context_saved_is"] == f"estimate: {formula}"
    assert found["time_saved_is"] == "estimate: 4 calls beyond the first of their run x 2,000 ms"


def test_failures_are_counted_by_tool_and_type(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(NOW), call_row(NOW, error_type="ToolTimeout"), call_row(NOW, "t.g", error_type="ValueError")])
    one.write([call_row(NOW + 1, error_type="ToolTimeout"), run_row(NOW, error_type="ProgramFailed")])
    one.close()
    figures = read_figures(file, "all", NOW)
    found = {(row["tool"], row["error_type"]): row["count"] for row in figures.errors}
    assert found == {("t.f", "ToolTimeout"): 2, ("t.g", "ValueError"): 1, ("", "ProgramFailed"): 1}
    assert (figures.runs["errors"], [tool.errors for tool in figures.tools]) == (1, [2, 1])


def test_rows_of_statistics_that_were_lost_are_told(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file, clock=lambda: NOW)
    one.write([call_row(NOW)], 17)
    one.close()
    assert summary(read_figures(file, "all", NOW))["rows_lost"] == 17


def test_all_periods_of_a_month_are_answered_alike_by_hours_and_days(tmp_path: Path) -> None:
    file = demo_database(tmp_path / "stats.db", demo_rows(days=5))
    week, month = read_figures(file, "week", NOW), read_figures(file, "month", NOW)
    assert {tool.tool: (tool.calls, tool.chars) for tool in week.tools} == {
        tool.tool: (tool.calls, tool.chars) for tool in month.tools
    }
    assert week.p95_ms == month.p95_ms
    assert week.run_calls == month.run_calls


def test_what_is_written_while_questions_are_asked_is_in_all_answers_or_in_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([run_row(NOW, calls=1), call_row(NOW)])
    ask_runs = query._Ask.runs  # pyright: ignore[reportPrivateUsage] - the question before which another server writes

    def runs(self: Any) -> dict[str, Any]:
        one.write([run_row(NOW, calls=1), call_row(NOW)])
        return ask_runs(self)

    monkeypatch.setattr(query._Ask, "runs", runs)  # pyright: ignore[reportPrivateUsage] - as above
    found = read_figures(file, "all", NOW + 1)
    one.close()
    assert (found.runs["calls"], sum(tool.calls for tool in found.tools), sum(found.run_calls.values())) == (1, 1, 1)


def test_packs_whose_names_differ_in_case_alone_are_two(tmp_path: Path) -> None:
    file = tmp_path / "stats.db"
    one = sink(file)
    one.write([call_row(NOW, "web.get"), call_row(NOW, "Web.get"), call_row(NOW, "web_get.x"), call_row(NOW, "we%.x")])
    one.close()
    for name, tools in {
        "web": ["web.get"],
        "Web": ["Web.get"],
        "WEB": [],
        "we%": ["we%.x"],
        "web.get": ["web.get"],
    }.items():
        assert [found.tool for found in read_figures(file, "all", NOW, tool=name).tools] == tools
