"""Samples of the databases, as the SQL that makes them again."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ot.execution.caller import Caller
from ot.execution.ledger import Effect, HowEnded
from ot.ledger.background_run import BackgroundRun, RunEnd
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.registry.tool import Tool
from ot.stats.query import read_figures
from ot.stats.rows import CallRow, ConnectionRow, RunRow
from ot.stats.sqlite_sink import SqliteSink
from stored_formats.frozen_world import NOW
from stored_formats.stored_format import StoredFormat

ENDS: tuple[HowEnded, ...] = ("done", "failed", "unknown")


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


PAY = Tool("bank", "pay")


def effect(run: str, call: int, amount: int, start: int = 0) -> Effect:
    """Return a call that pays *amount*."""
    return Effect(Caller("ada"), run, call, 3, PAY, {"amount": amount}, start=start)


def _ledger(directory: Path) -> SqliteLedger:
    return SqliteLedger(LedgerFile(directory / "ledger.db", clock=lambda: NOW))


async def _write_ledger(ledger: SqliteLedger) -> None:
    for call, how in enumerate(ENDS):
        await ledger.send(effect("r1", call, call))
        ledger.ended(effect("r1", call, call), how)
    await ledger.send(effect("r1", 3, 3))  # whoever sent it has died by the time it is read
    await ledger.add(BackgroundRun("b1", "ada", "bank.pay(amount=9)", NOW, "nightly", "cursor", ("ops",), True), 9)
    await ledger.begin("b1")
    await ledger.send(effect("b1", 0, 9, 1))
    ledger.ended(effect("b1", 0, 9, 1), "done", {"paid": 9})
    await ledger.end("b1", 1, RunEnd("done", NOW + 1, ("9 paid",)))
    await ledger.add(BackgroundRun("b2", "ada", "bank.pay(amount=8)", NOW + 2), 9)
    await ledger.begin("b2")
    await ledger.ask("b2", 1, {"number": 1, "text": "Pay 8?"})


def _make_ledger(directory: Path) -> None:
    ledger = _ledger(directory)
    asyncio.run(_write_ledger(ledger))
    ledger.close()
    dump(directory / "ledger.db", directory / "ledger.sql")
    (directory / "writers").rmdir()


async def _looked_up(ledger: SqliteLedger) -> Any:
    calls = [await ledger.of_run("ada", run) for run in ("r1", "b1")]
    again = await ledger.send(effect("r9", 0, 2))
    statuses = await ledger.runs("ada")
    return {
        "states": [entry.state for entry in calls[0]],
        "value": [entry.value for entry in calls[1]],
        "the same call": [again.run_id, again.line] if again else None,
        "runs": [[status.state, status.starts, status.question] for status in statuses],
        "first": statuses[-1].run.as_json() | {"groups": list(statuses[-1].run.groups)},
        "end": asdict(statuses[-1].end) | {"texts": list(statuses[-1].end.texts)} if statuses[-1].end else None,
        "left behind": await ledger.left_behind(),
    }


LEDGER_READ = {
    "states": ["done", "failed", "unknown", "unknown"],
    "value": [{"paid": 9}],
    "the same call": ["r1", 3],
    "runs": [["asks", 1, {"number": 1, "text": "Pay 8?"}], ["done", 1, None]],
    "first": {"id": "b1", "principal": "ada", "command": "bank.pay(amount=9)", "created": NOW, "name": "nightly"}
    | {"client": "cursor", "groups": ["ops"], "admin": True},
    "end": {"state": "done", "at": NOW + 1, "texts": ["9 paid"], "error": "", "handle": ""},
    "left behind": ["b2"],
}


def _read_ledger(directory: Path) -> Any:
    restore(directory / "ledger.sql", directory / "ledger.db")
    ledger = _ledger(directory)
    try:
        return asyncio.run(_looked_up(ledger))
    finally:
        ledger.close()


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
    StoredFormat("ledger", _make_ledger, _read_ledger, LEDGER_READ),
)
