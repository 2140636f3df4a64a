"""The PostgreSQL of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ledger.postgres_bed import DURABLE
from postgres_server import PostgresServer, postgres_server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL for one file: whoever uses it takes a schema of its own."""
    with postgres_server(*DURABLE) as server:
        yield server
