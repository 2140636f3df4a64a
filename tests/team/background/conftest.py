"""One Redis for the tests of this directory that do it no harm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from state.redis_process import RedisProcess, running_redis


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisProcess]:
    """A Redis that nobody stops: whoever uses it takes a prefix of its own."""
    with running_redis() as process:
        yield process
