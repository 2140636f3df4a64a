"""Rows and files for tests of the statistics."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ot.config.models import Stats
from ot.execution.caller import Caller
from ot.execution.tool_executor import CallRecord
from ot.stats.recorder import StatsPlace
from ot.stats.rows import CallRow, RunRow
from ot.stats.sqlite_sink import SqliteSink
from stats.demo_rows import NOW


def run_row(ts: float = 1000.0, **more: Any) -> RunRow:
    """Return a run that called nothing."""
    return RunRow(ts, "me", "test", "r1", 10, 20, 5.0, "", 0, 0, 0, "portable")._replace(**more)


def call_row(ts: float = 1000.0, tool: str = "t.f", **more: Any) -> CallRow:
    """Return a call that went well."""
    return CallRow(ts, "me", "test", "r1", tool, tool.partition(".")[0], 2.0, "", 100, "in_process")._replace(**more)


def call(tool: str = "t.f", seconds: float = 0.002, **more: Any) -> CallRecord:
    """Return what the door tells of a call."""
    settings: dict[str, Any] = {"chars": 10, "source": "worker", **more}
    return CallRecord(tool, Caller("me", client=settings.pop("client", "test")), "r1", seconds, **settings)


def sink(path: Path, **options: Any) -> SqliteSink:
    """Return a sink that keeps everything for ever."""
    settings: dict[str, Any] = {"detail_days": 0, "retention_days": 0, "clock": lambda: NOW, **options}
    return SqliteSink(path, **settings)


def place(path: Path, **settings: Any) -> StatsPlace:
    """Return where a recorder is to write."""
    return StatsPlace(path, Stats(**settings))


def count(path: Path, table: str = "calls") -> int:
    """Return how many rows a table has."""
    return ask(path, f"SELECT count(*) FROM {table}")[0][0]


def ask(path: Path, statement: str) -> list[tuple[Any, ...]]:
    """Return the rows that a statement finds."""
    with closing(sqlite3.connect(path, timeout=10)) as connection:
        return connection.execute(statement).fetchall()
