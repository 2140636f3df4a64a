"""Samples of the ledger, with the same entries in both of its forms: a file, and tables of PostgreSQL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import PostgresSessions
from ot.execution.caller import Caller
from ot.execution.ledger import Effect, HowEnded
from ot.ledger.background_run import BackgroundRun, RunEnd
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.run_book import KeptLedger
from ot.ledger.sqlite_ledger import SqliteLedger
from ot.registry.tool import Tool
from pace import PATIENCE
from postgres_server import PostgresServer, postgres_server
from stored_formats.databases import dump, restore
from stored_formats.frozen_world import NOW
from stored_formats.stored_format import StoredFormat
from stored_formats.values_in_redis import KEYS

ENDS: tuple[HowEnded, ...] = ("done", "failed", "unknown")
PAY = Tool("bank", "pay")
FIRST = BackgroundRun("b1", "ada", "bank.pay(amount=9)", NOW, "nightly", "cursor", ("ops",), True, "/srv/shop")
QUESTION = {"number": 1, "text": "Pay 8?"}
ENTRIES = "ledger.json"
TABLES = {"effects": "run, start, call", "runs": "id"}
"""Without who is alive, which nobody reads later."""
DUMP = "SELECT json_agg(t ORDER BY {key}) FROM sample.{table} t"
RESTORE = "INSERT INTO sample.{table} SELECT * FROM json_populate_recordset(NULL::sample.{table}, $json${rows}$json$)"
MOMENT = "2026-01-01T12:00:00+00:00"


def effect(run: str, call: int, amount: int, start: int = 0) -> Effect:
    """Return a call that pays *amount*."""
    return Effect(Caller("ada"), run, call, 3, PAY, {"amount": amount}, start=start, given_key=f"key-{call}")


async def _write(ledger: KeptLedger) -> None:
    for call, how in enumerate(ENDS):
        await ledger.send(effect("r1", call, call))
        ledger.record_end(effect("r1", call, call), how)
    await ledger.send(effect("r1", 3, 3))  # whoever sent it has died by the time it is read
    await ledger.add(FIRST, 9)
    await ledger.begin("b1")
    await ledger.use_packs("b1", 1, {"bank": "1.0"})
    await ledger.send(effect("b1", 0, 9, 1))
    ledger.record_end(effect("b1", 0, 9, 1), "done", {"paid": 9})
    await ledger.end("b1", 1, RunEnd("done", NOW + 1, ("9 paid",), handle="h" * 22))
    await ledger.add(BackgroundRun("b2", "ada", "bank.pay(amount=8)", NOW + 2), 9)
    await ledger.begin("b2")
    await ledger.use_packs("b2", 1, {"bank": "1.0"})
    await ledger.ask("b2", 1, QUESTION)


async def _looked_up(ledger: KeptLedger) -> Any:
    calls = [await ledger.of_run("ada", run) for run in ("r1", "b1")]
    again = await ledger.send(effect("r9", 0, 2))
    asking, ended = await ledger.runs("ada")
    left = await ledger.list_left_behind()
    start = await ledger.begin("b2")
    assert ended.end and start
    return {
        "states": [entry.state for entry in calls[0]],
        "keys": [entry.given_key for entry in calls[0]],
        "value": [entry.value for entry in calls[1]],
        "the same call": [again.run_id, again.line] if again else None,
        "asking": [asking.state, asking.starts, asking.question],
        "ended": [ended.state, ended.end.state, ended.end.at, list(ended.end.texts), ended.end.handle],
        "run": [getattr(ended.run, name) for name in ("id", "command", "created", "name", "client", "admin")],
        "groups and place": [list(ended.run.groups), ended.run.directory],
        "left behind": left,
        "next start": [start.number, await ledger.use_packs("b2", start.number, {"bank": "2.0"})],
    }


READ = {
    "states": ["done", "failed", "unknown", "unknown"],
    "keys": ["key-0", "key-1", "key-2", "key-3"],
    "value": [{"paid": 9}],
    "the same call": ["r1", 3],
    "asking": ["asks", 1, QUESTION],
    "ended": ["done", "done", NOW + 1, ["9 paid"], "h" * 22],
    "run": ["b1", "bank.pay(amount=9)", NOW, "nightly", "cursor", True],
    "groups and place": [["ops"], "/srv/shop"],
    "left behind": ["b2"],
    "next start": [2, {"bank": "1.0"}],
}


# ---------------------------------------------------------------- a file


def _in_file(directory: Path) -> SqliteLedger:
    return SqliteLedger(LedgerFile(directory / "ledger.db", clock=lambda: NOW))


def _make_file(directory: Path) -> None:
    ledger = _in_file(directory)
    asyncio.run(_write(ledger))
    ledger.close()
    dump(directory / "ledger.db", directory / "ledger.sql")
    (directory / "writers").rmdir()


def _read_file(directory: Path) -> Any:
    restore(directory / "ledger.sql", directory / "ledger.db")
    ledger = _in_file(directory)
    try:
        return asyncio.run(_looked_up(ledger))
    finally:
        ledger.close()


# ---------------------------------------------------------------- tables of PostgreSQL


@asynccontextmanager
async def _in_postgres(url: str) -> AsyncGenerator[PostgresLedger]:
    ledger = PostgresLedger(
        PostgresSessions(url, "sample", answer_seconds=PATIENCE), PostgresPlace(KEYS), clock=lambda: NOW
    )
    try:
        yield ledger
    finally:
        await ledger.aclose()


def _make_tables(directory: Path) -> None:
    async def made(url: str) -> None:
        async with _in_postgres(url) as ledger:
            await _write(ledger)

    with postgres_server() as server:
        asyncio.run(made(server.address))
        found = {table: json.loads(server.run(DUMP.format(table=table, key=key))) for table, key in TABLES.items()}
    for row in found["runs"]:  # by the server's clock
        row |= {name: row[name] and MOMENT for name in ("begun", "ended")}
    (directory / ENTRIES).write_text(json.dumps(found, indent=1) + "\n")


def _read_tables(directory: Path) -> Any:
    async def read(server: PostgresServer) -> Any:
        async with _in_postgres(server.address) as ledger:
            await ledger.runs("ada")  # it makes the tables
            for table, rows in json.loads((directory / ENTRIES).read_text()).items():
                server.run(RESTORE.format(table=table, rows=json.dumps(rows)))
            return await _looked_up(ledger)

    with postgres_server() as server:
        return asyncio.run(read(server))


FORMATS = (
    StoredFormat("ledger", _make_file, _read_file, READ),
    StoredFormat("ledger_in_postgres", _make_tables, _read_tables, READ),
)
