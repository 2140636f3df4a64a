"""The ledger in PostgreSQL keeps the contract that the file of one user keeps, and the laws of the book of runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from secrets import token_hex

import pytest

from ledger.postgres_bed import PostgresBed
from ledger.test_ledger_contract import *  # noqa: F403 - the contract's tests
from ledger.test_run_book_laws import *  # noqa: F403 - likewise
from ledger.test_run_book_laws import MakeBed
from postgres_server import PostgresServer


@pytest.fixture
async def bed(postgres: PostgresServer) -> AsyncIterator[PostgresBed]:
    """An empty ledger."""
    bed = PostgresBed(postgres.address, token_hex(8))
    yield bed
    await bed.aclose()


@pytest.fixture(scope="module")
def make_bed(postgres: PostgresServer) -> MakeBed:
    """How to make a place with nothing in it."""
    return lambda _: PostgresBed(postgres.address, token_hex(8))
