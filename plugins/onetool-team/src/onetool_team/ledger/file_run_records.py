"""FileRunRecords: the runs and calls of everybody on one machine, in the ledger's file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onetool_team.erased_rows import erase_rows, read_rows
from onetool_team.ledger.run_records import MOST_LISTED
from ot.errors import LedgerUnavailable
from ot.ledger.background_run import RunStatus
from ot.ledger.run_book import KeptLedger

TABLES = {"runs": "runs", "calls": "effects"}
LATEST = """SELECT id, principal FROM (SELECT * FROM runs ORDER BY created DESC LIMIT ?)
    UNION SELECT id, principal FROM runs WHERE ending IS NULL"""
WHOSE = "SELECT principal FROM runs WHERE id = ? UNION SELECT principal FROM effects WHERE run = ?"


class FileRunRecords:
    """Reads the file beside the servers that write it."""

    def __init__(self, file: Path, ledger: KeptLedger) -> None:
        """Read *file*, which *ledger* keeps."""
        self._file = file
        self._ledger = ledger

    async def latest(self, people: Sequence[str], most: int = MOST_LISTED) -> list[RunStatus]:
        """Return the latest runs of *people*, and all that have not ended."""
        found = [await self._ledger.status(principal, id) for id, principal in await self._rows(LATEST, most)]
        return sorted([one for one in found if one], key=lambda one: -one.run.created)

    async def whose(self, id: str, people: Sequence[str]) -> str:
        """Return who has a run."""
        return next((principal for (principal,) in await self._rows(WHOSE, id, id)), "")

    async def count(self, principal: str) -> Mapping[str, int]:
        """Return how much is kept."""
        found: dict[str, int] = {}
        for what, table in TABLES.items():
            rows = await self._rows(f"SELECT count(*) FROM {table} WHERE principal = ?", principal)
            found[what] = rows[0][0] if rows else 0
        return found

    async def forget(self, principal: str) -> None:
        """Keep nothing of *principal*."""
        try:
            await asyncio.to_thread(erase_rows, self._file, list(TABLES.values()), principal)
        except OSError as error:
            raise LedgerUnavailable(str(error)) from None

    async def list_workers(self) -> list[dict[str, object]]:
        """Return none: the one server carries out its runs itself."""
        return []

    async def _rows(self, question: str, *given: object) -> list[tuple[Any, ...]]:
        try:
            return await asyncio.to_thread(read_rows, self._file, question, *given)
        except OSError as error:
            raise LedgerUnavailable(str(error)) from None
