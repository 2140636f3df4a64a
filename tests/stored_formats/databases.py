"""Databases as the SQL that makes them again; and the sample of the statistics."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ot.stats.query import read_figures
from ot.stats.rows import CallRow, ConnectionRow, RunRow
from ot.stats.sqlite_sink import SqliteSink
from stored_formats.frozen_world import NOW
from stored_formats.stored_format import StoredFormat


def dump(database: Path, text: Path) -> None:
    """Write *database* as SQL, and remove it with what lies beside it."""
    with closing(sqlite3.connect(database)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        lines = [*connection.iterdump(), f"PRAGMA user_version = {version};"]
    text.write_text("".join(f"{line}\n" for line in lines))
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()


def restore(text: Path, database: Path) -> Path:
    """Make *database* of its SQL."""
    with closing(sqlite3.connect(database)) as connection:
        connection.executescript(text.read_text())
    database.chmod(0o600)
    return database


def _make_statistics(directory: Path) -> None:
    sink = SqliteSink(directory / "stats.db", detail_days=30, retention_days=0, clock=lambda: NOW)
    run = RunRow(NOW - 60, "ada", "cursor", "r1", 120, 80, 12.5, "", 2, 4000, 0, "exact", ("fence",))
    failed = RunRow(NOW - 50, "ada", "cursor", "r2", 100, 60, 3.5, "ToolTimeout", 1, 0, 0, "exact")
    call = CallRow(NOW - 60, "ada", "cursor", "r1", "github.get_issue", "github", 8.0, "", 4000, "mcp_proxy")
    sink.write([run, failed, call, ConnectionRow(NOW - 70, "ada", "cursor", 61_000, 2_100)], lost=3)
    sink.close()
    dump(directory / "stats.db", directory / "stats.sql")


def _read_statistics(directory: Path) -> Any:
    database = restore(directory / "stats.sql", directory / "stats.db")
    found = read_figures(database, "all", NOW, principal="ada")
    (tool,) = found.tools
    return {
        "runs": [found.runs[name] for name in ("runs", "errors", "calls", "composed", "kept_out", "flat_chars")],
        "errors": [error["error_type"] for error in found.errors],
        "clients": [[client["client"], client["runs"], client["ms"]] for client in found.clients],
        "tool": [tool.tool, tool.source, tool.calls, tool.chars, tool.slowest_ms, tool.p50_ms],
    }


FORMATS = (
    StoredFormat(
        "statistics",
        _make_statistics,
        _read_statistics,
        {
            "runs": [2, 1, 3, 1, 3920, 61_000],
            "errors": ["ToolTimeout"],
            "clients": [["cursor", 2, 16.0]],
            "tool": ["github.get_issue", "mcp_proxy", 1, 4000, 8.0, 8.3],
        },
    ),
)
