"""A Redis and a PostgreSQL for the tests of a file that do them no harm; they end with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from postgres_server import PostgresServer, postgres_server
from state.redis_process import RedisProcess, running_redis


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    """A Redis that nobody stops, for one file: whoever uses it takes a prefix of its own."""
    with running_redis() as process:
        yield process


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that nobody stops, likewise."""
    with postgres_server() as server:
        yield server
