"""The sample of what a team's people keep in PostgreSQL beside the ledger: each table with its rows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.postgres.logins import PostgresLogins
from onetool_team.postgres.notes import PostgresNotes
from onetool_team.postgres.permissions import PostgresPermissions
from onetool_team.postgres.pins import PinRows
from onetool_team.postgres.team_rows import TeamRows
from ot.notes.kept_notes import Chosen
from ot.proxied.pin_books import PinBook
from pace import PATIENCE
from postgres_server import PostgresServer, postgres_server
from stored_formats.files_of_servers import LOGIN, account_in
from stored_formats.ledgers import DUMP, MOMENT, RESTORE
from stored_formats.stored_format import StoredFormat
from stored_formats.values_in_redis import KEYS

ROWS = "people.json"
TABLES = {
    "permissions": "principal, tool",
    "logins": "account",
    "pins": "principal, server",
    "note_ids": "principal",
    "notes": "principal, id",
}
"""Without who renews a login now."""
CLOCKS = ("given", "changed", "created", "updated")
BOOK = PinBook("docs", {"e1": {"search": {"name": "search", "description": "Search."}}}, packs=("docs",), owner="ada")


@asynccontextmanager
async def _opened(url: str) -> AsyncGenerator[TeamRows]:
    sessions = PostgresSessions(url, "sample", answer_seconds=PATIENCE)
    try:
        yield TeamRows(sessions, KEYS)
    finally:
        await sessions.aclose()


def _notes(rows: TeamRows) -> PostgresNotes:
    return PostgresNotes(rows, "ada", 1 << 20, asyncio.get_running_loop())


async def _write(rows: TeamRows) -> None:
    await PostgresPermissions(rows).add("ada", "github.get_issue")
    await PostgresLogins(rows).write(account_in(Path()), json.dumps(LOGIN.to_json()).encode())
    await PinRows(rows, Path("nowhere")).write(("docs", "ada"), BOOK, None)
    notes = _notes(rows)
    await asyncio.to_thread(notes.add, "user", "Deploys go out on Tuesdays", ["decision"], 9)
    await asyncio.to_thread(notes.add, "user", "Gone", [], 9)
    await asyncio.to_thread(notes.delete, [2], ["user"])


async def _read(rows: TeamRows) -> Any:
    notes, chosen = _notes(rows), Chosen(["user"], ["decision"])
    login = await PostgresLogins(rows).read(account_in(Path()))
    listed = await asyncio.to_thread(notes.latest, chosen, 9)
    return {
        "allowed": list(await PostgresPermissions(rows).patterns("ada")),
        "login": login and json.loads(login),
        "approved": (await PinRows(rows, Path("nowhere")).read(("docs", "ada"))).book == BOOK,
        "listed": [[row.id, row.text, row.tags, row.created] for row in listed],
        "found": [row.id for row in await asyncio.to_thread(notes.search, "deploying", chosen, 9)],
        "next": (await asyncio.to_thread(notes.add, "user", "New", [], 9)).id,
    }


async def _with_rows[T](url: str, work: Callable[[TeamRows], Awaitable[T]]) -> T:
    async with _opened(url) as rows:
        return await work(rows)


def _make_tables(directory: Path) -> None:
    with postgres_server() as server:
        asyncio.run(_with_rows(server.address, _write))
        found = {table: json.loads(server.run(DUMP.format(table=table, key=key))) for table, key in TABLES.items()}
    for rows in found.values():  # by the server's clock
        for row in rows:
            row |= {name: MOMENT for name in CLOCKS if name in row}
    (directory / ROWS).write_text(json.dumps(found, indent=1) + "\n")


def _read_tables(directory: Path) -> Any:
    def restore(server: PostgresServer) -> None:
        for table, rows in json.loads((directory / ROWS).read_text()).items():
            server.run(RESTORE.format(table=table, rows=json.dumps(rows)))

    with postgres_server() as server:

        async def read(rows: TeamRows) -> Any:
            await rows.rows("SELECT 1")  # it makes the tables
            await asyncio.to_thread(restore, server)
            return await _read(rows)

        return asyncio.run(_with_rows(server.address, read))


FORMATS = (
    StoredFormat(
        "people_in_postgres",
        _make_tables,
        _read_tables,
        {
            "allowed": ["github.get_issue"],
            "login": LOGIN.to_json(),
            "approved": True,
            "listed": [[1, "Deploys go out on Tuesdays", ["decision"], 1_767_268_800.0]],
            "found": [1],
            "next": 3,
        },
    ),
)
