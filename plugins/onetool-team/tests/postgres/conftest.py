"""The PostgreSQL of these tests, and what several processes of one team keep in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

import pytest

from ledger.postgres_bed import DURABLE
from postgres.rows_bed import RowsBed
from postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for one file: whoever uses it takes a schema of its own."""
    with postgres_server(*DURABLE) as server:
        yield server


@pytest.fixture
async def bed(postgres: PostgresServer) -> AsyncGenerator[RowsBed]:
    """A team that nobody has used yet."""
    bed = RowsBed(postgres.address)
    yield bed
    await bed.aclose()
