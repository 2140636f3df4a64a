"""Rows of a month as a busy user makes them, the same each time.

`python tests/stats/demo_rows.py FILE` writes a report of them, to look at.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ot.stats.html_report import html_report
from ot.stats.query import read_figures
from ot.stats.rows import CallRow, ConnectionRow, RunRow, StatsRow
from ot.stats.sqlite_sink import SqliteSink

NOW = 1_780_000_000.0
DAY = 86_400
PACKS = {
    "github": (["search_issues", "get_pull_request", "list_commits", "create_issue"], 420, 5200, "mcp_proxy"),
    "file": (["read", "search", "glob", "write"], 2.4, 3800, "in_process"),
    "web": (["fetch", "extract"], 780, 14_000, "in_process"),
    "brave": (["search", "web_search"], 350, 2600, "mcp_proxy"),
    "git": (["log", "diff", "status"], 14, 2200, "in_process"),
    "db": (["query", "tables"], 38, 9000, "worker"),
    "slack": (["post", "history"], 260, 1800, "mcp_proxy"),
    "docs": (["lookup"], 190, 6000, "in_process"),
    "excel": (["read_sheet", "write_sheet"], 95, 11_000, "worker"),
    "llm": (["transform"], 2300, 900, "worker"),
    "memory": (["note", "recall"], 1.2, 300, "in_process"),
    "ot": (["help", "tools", "result"], 0.9, 700, "in_process"),
}
CLIENTS = {"claude-code": 6, "cursor": 3, "codex": 1.4, "cli": 0.5}
ERRORS = ("ToolTimeout", "HTTPStatusError", "InvalidArguments", "ValueError", "ServerUnavailable")


def demo_rows(days: int = 30, runs_a_day: int = 90, seed: int = 7) -> Iterator[StatsRow]:
    """Yield the rows of *days* days up to ``NOW``."""
    chance = random.Random(seed)
    for day in range(days):
        start = NOW - (days - day) * DAY
        weekend = (int(start) // DAY + 4) % 7 in (0, 6)
        for client in ("claude-code", "cursor"):
            yield ConnectionRow(start + 10, "me", client, 61_000, 2_100)
        for number in range(int(runs_a_day * (0.25 if weekend else 1) * chance.uniform(0.7, 1.3) * (0.6 + day / days))):
            yield from _run(chance, start + chance.random() * DAY, f"{day:02x}{number:04x}")


def _run(chance: random.Random, ts: float, run: str) -> Iterator[StatsRow]:
    (client,) = chance.choices(list(CLIENTS), list(CLIENTS.values()))
    calls = min(60, int(chance.lognormvariate(0.9, 0.9)))
    total, own, took = 0, 0, 3.0
    for _ in range(calls):
        (pack,) = chance.choices(list(PACKS), [9, 14, 6, 5, 5, 3, 2, 3, 2, 1.5, 3, 4])
        tools, ms, chars, source = PACKS[pack]
        tool = f"{pack}.{chance.choice(tools)}"
        error = chance.choice(ERRORS) if chance.random() < (0.06 if source == "mcp_proxy" else 0.012) else ""
        duration = ms * chance.lognormvariate(0, 0.6)
        returned = 0 if error else int(chars * chance.lognormvariate(0, 0.8))
        yield CallRow(ts, "me", client, run, tool, pack, duration, error, returned, source)
        took += duration
        own, total = (own + returned, total) if pack == "ot" else (own, total + returned)
    out = min(total + own + 80, int(chance.lognormvariate(6.4, 0.9)))
    failed = chance.choice(("ProgramFailed", "ProgramFailed", "InvalidSyntax")) if chance.random() < 0.05 else ""
    yield RunRow(
        ts, "me", client, run, int(chance.lognormvariate(5.2, 0.6)), out, took, failed, calls, total, own, "portable"
    )


def demo_database(path: Path, rows: Iterator[StatsRow] | None = None) -> Path:
    """Write the rows to a database and return its path."""
    sink = SqliteSink(path, detail_days=0, retention_days=0, clock=lambda: NOW)
    sink.write(list(rows or demo_rows()))
    sink.close()
    return path


def main() -> None:
    """Write a report to look at."""
    with tempfile.TemporaryDirectory() as directory:
        figures = read_figures(demo_database(Path(directory) / "stats.db"), "month", NOW)
    names = [f"{pack}.{tool}" for pack, (tools, *_) in PACKS.items() for tool in tools]
    report = html_report(figures, tool_names=[*names, "jira.search", "jira.create", "notion.find", "git.blame"])
    Path(sys.argv[1]).write_text(report, encoding="utf-8")


if __name__ == "__main__":
    main()
