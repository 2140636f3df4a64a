"""One Redis for the tests of a file that do it no harm; it ends with them: others count the processes here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from state.redis_process import RedisProcess, running_redis


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    """A Redis that nobody stops: whoever uses it takes a prefix of its own."""
    with running_redis() as process:
        yield process
