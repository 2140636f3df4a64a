"""The book that a test's workers share."""
from __future__ import annotations
from pathlib import Path
from ot.ledger.ledger_file import LedgerFile
from ot.ledger.sqlite_ledger import SqliteLedger


class TeamBook(SqliteLedger):
    async def aclose(self) -> None:
        self.close()


def open_book(root: Path, url: str, key: str) -> TeamBook:
    return TeamBook(LedgerFile(root / "workers" / "home" / ".onetool" / "ledger" / "ledger.db"))
