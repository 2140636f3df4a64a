"""The Redis of these tests, and the two ledgers that keep one contract."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from secrets import token_hex

import pytest

from ledger.ledger_beds import FileBed, LedgerBed, RedisBed
from state.redis_process import RedisProcess, running_redis


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    """A Redis that nobody stops, for one file: whoever uses it takes a prefix of its own."""
    with running_redis() as process:
        yield process


@pytest.fixture(params=["file", "redis"])
async def bed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LedgerBed]:
    """Each of the two, empty."""
    if request.param == "file":
        bed: LedgerBed = FileBed(tmp_path / "ledger" / "ledger.db")
    else:
        process: RedisProcess = request.getfixturevalue("redis")
        bed = RedisBed(process.url, token_hex(8))
    yield bed
    await bed.aclose()
