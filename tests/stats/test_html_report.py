"""The report, opened in a real browser."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ot.stats.html_report import html_report
from ot.stats.query import read_figures
from ot.stats.rows import ConnectionRow
from stats.browser import Page, browser
from stats.demo_rows import NOW, demo_database, demo_rows
from stats.desk import call_row, run_row

HOSTILE = "<img src=x onerror=document.title='HIT'>"
CLOSING = "</script><script>document.title='HIT'</script>"
DRAWN = """[...document.querySelectorAll("canvas")].map(canvas => {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) colours.add(data.slice(at, at + 3).join());
  return [canvas.id, colours.size];
})"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser() as page:
        yield page


def report(tmp_path: Path, rows: Any = None, period: str = "month", **options: Any) -> Path:
    database = demo_database(tmp_path / "stats.db", rows)
    figures = read_figures(database, period, NOW, tool=options.get("tool", ""))
    file = tmp_path / "report.html"
    file.write_text(html_report(figures, **options), encoding="utf-8")
    return file


@pytest.mark.parametrize("dark", [False, True])
def test_every_chart_is_drawn_in_both_themes_and_nothing_is_refused(tmp_path: Path, page: Page, dark: bool) -> None:
    page.said.clear()
    page.open(report(tmp_path), dark=dark)
    drawn = dict(page.value(DRAWN))
    assert set(drawn) == {"calls", "kept", "per-run", "latency", "errors", "clients"}
    assert all(colours >= 3 for colours in drawn.values()), drawn
    assert drawn["calls"] > 9
    assert page.value("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    assert page.value("getComputedStyle(document.body).backgroundColor") == (
        "rgb(15, 18, 22)" if dark else "rgb(246, 247, 249)"
    )
    assert page.said == []


def test_the_theme_can_be_switched_and_charts_follow(tmp_path: Path, page: Page) -> None:
    page.open(report(tmp_path))
    page.value("document.getElementById('theme').click()")
    assert page.value("document.documentElement.dataset.theme") == "dark"
    assert all(colours >= 3 for _, colours in page.value(DRAWN))


def test_names_that_try_to_be_markup_stay_text(tmp_path: Path, page: Page) -> None:
    names = [f"evil.{HOSTILE}", f"evil.{CLOSING}", f"{CLOSING}.x"]
    rows = [call_row(NOW - 5, name, error_type=CLOSING, client=HOSTILE, source=HOSTILE) for name in names]
    rows += [run_row(NOW - 5, client=HOSTILE, calls=2, error_type=HOSTILE), ConnectionRow(NOW, "me", CLOSING, 9, 1)]
    page.said.clear()
    page.open(report(tmp_path, rows, tool_names=[f"idle.{CLOSING}"]))
    assert page.value("document.title") == "OneTool statistics"
    assert page.value("document.querySelectorAll('img').length") == 0
    assert page.value("document.scripts.length") == 3
    shown = page.value("document.body.innerText")
    assert all(name in shown for name in names)
    assert all(colours >= 3 for _, colours in page.value(DRAWN))
    assert page.said == []


def test_a_filter_that_tries_to_be_markup_stays_text(tmp_path: Path, page: Page) -> None:
    page.open(report(tmp_path, [call_row(NOW - 5)], tool=CLOSING))
    assert page.value("document.title") == "OneTool statistics"
    assert CLOSING in page.value("document.body.innerText")


def test_nothing_of_the_report_overflows_a_phone(tmp_path: Path, page: Page) -> None:
    page.open(report(tmp_path), width=375)
    assert page.value("document.documentElement.scrollWidth") <= 375


def test_tables_sort_by_number_and_by_name(tmp_path: Path, page: Page) -> None:
    page.open(report(tmp_path))
    column = "[...document.querySelectorAll('.long table')[0].tBodies[0].rows].map(row => row.cells[{}].textContent)"
    page.value("document.querySelectorAll('.long th')[4].click()")
    times = [float(text.replace(",", "")) for text in page.value(column.format(4))]
    assert times == sorted(times, reverse=True)
    page.value("document.querySelectorAll('.long th')[0].click()")
    names = page.value(column.format(0))
    assert names == sorted(names)
    assert len(names) > 20


def test_an_empty_period_says_so(tmp_path: Path, page: Page) -> None:
    page.said.clear()
    page.open(report(tmp_path, iter([run_row(NOW - 5)])))
    assert "No calls in this period." in page.value("document.body.innerText")
    assert page.said == []


def test_the_file_is_small_and_loads_nothing(tmp_path: Path) -> None:
    text = report(tmp_path, demo_rows(days=30, runs_a_day=300)).read_text()
    assert len(text.encode()) < 1_000_000
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    assert policy[1].startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "unsafe" not in policy[1]
    outside = text.replace((Path(html_report.__code__.co_filename).parent / "vendor/chart.js").read_text()[:-50], "")
    assert not re.findall(r'(?:src|href)="(?!data:)', outside)


def test_the_data_can_be_taken_along_and_no_cell_is_a_formula(tmp_path: Path) -> None:
    rows = [call_row(NOW, "=cmd.calc"), call_row(NOW, "a.b"), run_row(NOW)]
    text = report(tmp_path, iter(rows)).read_text()
    found = {kind: base64.b64decode(data).decode() for kind, data in re.findall(r'data:([\w/]+);base64,([^"]+)', text)}
    table = list(csv.DictReader(io.StringIO(found["text/csv"])))
    assert [row["tool"] for row in table] == ["'=cmd.calc", "a.b"]
    assert json.loads(found["application/json"])["total_calls"] == 2


def test_tools_that_nobody_called_are_named_whole_packs_as_one(tmp_path: Path) -> None:
    rows = [call_row(NOW, "git.log"), run_row(NOW)]
    text = report(tmp_path, iter(rows), tool_names=["git.log", "git.diff", "jira.a", "jira.b", "ot.help"]).read_text()
    assert re.findall(r"<span>([^<]+)</span>", text.partition("Not called")[2]) == ["git.diff", "jira.* (2)"]


def test_ten_thousand_tools_still_make_a_small_report(tmp_path: Path) -> None:
    rows = iter([run_row(NOW), *(call_row(NOW, f"pack_{n % 500}.tool_{n}") for n in range(10_000))])
    names = [f"idle_{n}.tool" for n in range(5_000)]
    text = report(tmp_path, rows, tool_names=names).read_text()
    assert len(text.encode()) < 1_000_000
    assert text.count("<tr>") < 300
