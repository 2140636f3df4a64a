"""The ledger of one user, which keeps the contract of all ledgers; those of plugins have beds of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ledger.ledger_beds import FileBed, LedgerBed


@pytest.fixture
async def bed(tmp_path: Path) -> AsyncIterator[LedgerBed]:
    """An empty one."""
    bed = FileBed(tmp_path / "ledger" / "ledger.db")
    yield bed
    await bed.aclose()
