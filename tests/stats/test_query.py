"""What the statistics answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ot.stats import query
from ot.stats.figures import PERIODS, Savings, summary
from ot.stats.query import read_figures
from ot.stats.rows import ConnectionRow
from stats.demo_rows import DAY, NOW, demo_database, demo_rows
from stats.desk import call_row, run_row, sink

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


def test_lost_rows_are_told(tmp_path: Path) -> None:
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
