"""KeptLedger: what both ledgers can do, the file of one user and the Redis of a team."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ot.execution.ledger import Ledger
from ot.ledger.entries import LedgerEntry
from ot.ledger.run_book import RunBook


class KeptLedger(Ledger, RunBook, Protocol):
    """Keeps calls and background runs over crashes; every read raises LedgerUnavailable when it cannot be reached."""

    async def of_run(self, principal: str, run: str, directory: str | None = None) -> list[LedgerEntry]:
        """Return the calls of a run of *principal*, as they were made; with *directory* only those made there."""
        ...

    async def unknown(self, principal: str, most: int = 100, directory: str | None = None) -> list[LedgerEntry]:
        """Return the latest calls of *principal*, all or of *directory*, whose effect is unknown, latest first."""
        ...

    async def health(self) -> Mapping[str, str]:
        """Return which ledger it is, and what its entries survive; nothing is opened for that."""
        ...

    async def aclose(self) -> None:
        """Write what is there, and show that this writer has ended."""
        ...
