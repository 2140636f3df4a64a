"""Only run ids come off the docket: what else is written to its keys reaches no worker, least of all as a pickle."""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from docket import Docket, Worker
from docket.strikelist import Operator, Strike
from redis.asyncio import Redis

from ot.state.memory_state import MemoryState
from ot.team.background.run_worker import RunWorker, WorkerPace
from ot.team.docket.docket_queue import DocketQueue
from ot.team.docket.run_docket import TASK, RunDocket
from pace import PATIENCE
from state.redis_process import RedisProcess

pytestmark = pytest.mark.anyio

PACE = WorkerPace(redelivery_seconds=1.0, look_seconds=0.2, poll_seconds=0.02)


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str, int]]:
        return os.mkdir, (str(self.mark), 0o700)

    def __hash__(self) -> int:
        return 1


@dataclass
class Bench:
    """A docket of a test's own, and what its worker carried out."""

    url: str
    prefix: str = field(default_factory=lambda: f"t{secrets.token_hex(4)}")
    carried: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])
    in_the_book: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.queue = DocketQueue(self.url, self.prefix)

    @asynccontextmanager
    async def working(self) -> AsyncGenerator[None]:
        """Have a worker work in the block."""
        docket = RunDocket(self.url, self.prefix)
        worker = RunWorker(docket, self.queue, self._left_behind, MemoryState(), PACE)
        working = asyncio.ensure_future(worker.work(self.carried.put, 4))
        try:
            yield
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await self.queue.aclose()

    async def _left_behind(self) -> list[str]:
        return self.in_the_book

    async def next(self) -> str:
        """Return the run that was carried out next."""
        async with asyncio.timeout(PATIENCE):
            return await self.carried.get()

    async def add(self, **fields: bytes) -> None:
        """Write a message to the stream, as whoever may write to Redis can."""
        good = {"key": b"forged", "function": TASK.encode(), "args": pickle.dumps(()), "kwargs": pickle.dumps({})}
        good |= {"attempt": b"1", "generation": b"0", "when": datetime.now(UTC).isoformat().encode()}
        async with self.client() as client:
            await client.xadd(f"{self.prefix}:docket:stream", {**good, **fields})

    def client(self) -> Any:
        """Return a client of the same Redis, which may do everything."""
        return cast("Any", Redis).from_url(self.url)


@pytest.fixture
def bench(redis: RedisProcess) -> Bench:
    """A docket in the Redis of these tests."""
    return Bench(redis.url)


async def test_a_run_id_is_all_that_a_message_on_the_docket_carries(bench: Bench) -> None:
    await bench.queue.submit("f00d")
    async with bench.client() as client:
        ((_, message),) = await client.xrange(f"{bench.prefix}:docket:stream")
    assert message.pop(b"key") == b"f00d"
    assert pickle.loads(message.pop(b"args")) == ()
    assert pickle.loads(message.pop(b"kwargs")) == {}
    assert message.keys() <= {b"when", b"function", b"attempt", b"generation", b"traceparent"}
    async with bench.working():
        assert await bench.next() == "f00d"


async def test_a_pickle_that_somebody_else_put_on_the_docket_is_never_loaded(bench: Bench, tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(tmp_path / "mark"))
    async with bench.working():
        await bench.add(args=bomb)
        await bench.add(kwargs=bomb)
        await bench.add(args=bomb, function=b"trace")
        # One that names a run is as good as ours: the book knows no such run, or whether it may start.
        assert [await bench.next(), await bench.next()] == ["forged", "forged"]
        await bench.queue.submit("ours")
        assert await bench.next() == "ours"
    assert not (tmp_path / "mark").exists()


async def test_the_library_itself_would_load_such_a_pickle(bench: Bench, tmp_path: Path) -> None:
    await bench.add(args=pickle.dumps(Bomb(tmp_path / "mark")))
    docket = Docket(name=f"{bench.prefix}:docket", url=bench.url)
    async with docket, Worker(docket, minimum_check_interval=timedelta(milliseconds=20)) as worker:
        working = asyncio.ensure_future(worker.run_forever())
        async with asyncio.timeout(PATIENCE):
            while not (tmp_path / "mark").exists():  # noqa: ASYNC110 - a file tells nobody
                await asyncio.sleep(0.02)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def test_a_strike_that_somebody_wrote_is_never_loaded_and_strikes_nothing(bench: Bench, tmp_path: Path) -> None:
    strike = Strike(TASK, None, Operator.EQUAL, None).as_message()
    async with bench.client() as client:
        await client.xadd(f"{bench.prefix}:docket:strikes", {**strike, b"value": pickle.dumps(Bomb(tmp_path / "mark"))})
        await client.xadd(f"{bench.prefix}:docket:strikes", strike)
    async with bench.working():
        await bench.queue.submit("ours")
        assert await bench.next() == "ours"
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "fields",
    [
        {"key": b"../../etc"},
        {"key": b"a b"},
        {"key": b""},
        {"key": b"x" * 65},
        {"key": b"run\n"},
        {"generation": b"-1"},
        {"generation": b"x"},
        {"function": b"fail"},
        {"when": b"never"},
        {"attempt": b"many"},
    ],
    ids=str,
)
async def test_a_malformed_message_is_dropped_and_the_worker_goes_on(bench: Bench, fields: dict[str, bytes]) -> None:
    async with bench.working():
        await bench.add(**fields)
        await bench.queue.submit("ours")
        while (found := await bench.next()) != "ours":
            assert found == "forged"
        async with bench.client() as client, asyncio.timeout(PATIENCE):
            while await client.xlen(f"{bench.prefix}:docket:stream"):  # noqa: ASYNC110 - Redis tells nobody
                await asyncio.sleep(0.02)


async def test_an_empty_message_is_dropped_as_well(bench: Bench) -> None:
    async with bench.working():
        async with bench.client() as client:
            await client.xadd(f"{bench.prefix}:docket:stream", {"nothing": "at all"})
        await bench.queue.submit("ours")
        assert await bench.next() == "ours"


async def test_a_run_that_is_in_the_book_alone_is_found_by_a_worker(bench: Bench) -> None:
    bench.in_the_book.append("alone")
    async with bench.working():
        assert await bench.next() == "alone"
