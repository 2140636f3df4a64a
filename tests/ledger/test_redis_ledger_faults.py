"""A Redis that is killed, slow, full or without its replica: what cannot be written down is not sent, and at once."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest

from ledger.ledger_beds import RedisBed, background, effect, until
from ot.errors import LedgerUnavailable
from ot.ledger import redis_effects
from pace import PATIENCE, within
from state.redis_process import RedisProcess, running_redis

pytestmark = pytest.mark.anyio

KILLS = 2
ITEMS = 400
DURABLE = ("--appendonly", "yes", "--appendfsync", "always")


@asynccontextmanager
async def bed_on(redis: RedisProcess, **options: Any) -> AsyncGenerator[RedisBed]:
    """Yield a ledger with the times that servers have."""
    bed = RedisBed(redis.url, seconds=1.0, **options)
    try:
        async with asyncio.timeout(2 * PATIENCE):
            yield bed
    finally:
        await bed.aclose()


async def refused(bed: RedisBed, run: str, **arguments: Any) -> str:
    """Return why a call is not sent; whoever is refused says that it failed, as the door does."""
    with pytest.raises(LedgerUnavailable) as found:
        await bed.ledger.send(effect(run, **arguments))
    bed.ledger.record_end(effect(run, **arguments), "failed")
    return found.value.why


async def states(bed: RedisBed, run: str) -> list[str]:
    return [entry.state for entry in await bed.ledger.of_run("ada", run)]


async def is_sent(bed: RedisBed, amount: int, calls: Iterator[int] = itertools.count(1)) -> bool:  # noqa: B008 - each call has its own number
    """Return whether a call is sent, which fails while the replica has not caught up."""
    call = effect("replicated", next(calls), amount=amount)
    try:
        return await bed.ledger.send(call) is None
    except LedgerUnavailable:
        bed.ledger.record_end(call, "failed")
        raise


async def is_back(bed: RedisBed) -> None:
    async def answers() -> bool:
        await bed.ledger.runs("ada")
        return True

    await until(answers)


class Shop:
    """Sells each item once, if nobody sends a call that is not written down, or one twice."""

    def __init__(self, bed: RedisBed) -> None:
        self._bed = bed
        self._calls = itertools.count(1)
        self._items = iter(range(ITEMS))
        self.sold = Counter[int]()
        self.unknown: set[int] = set()
        self.refused = 0
        self._news = asyncio.Event()

    async def has_sold(self, most: int) -> None:
        """Return once it has sold that much."""
        while self.sold.total() < most:
            self._news.clear()
            await self._news.wait()

    async def sell(self) -> None:
        for item in self._items:
            while not await self._is_sold(item):
                self.refused += 1
                await asyncio.sleep(0.01)

    async def _is_sold(self, item: int) -> bool:
        call = effect(f"item{item}", next(self._calls), item=item)
        try:
            if await self._bed.ledger.send(call):
                self.unknown.add(item)
                return True
        except LedgerUnavailable:
            self._bed.ledger.record_end(call, "failed")
            return False
        self.sold[item] += 1
        self._news.set()
        self._bed.ledger.record_end(call, "done")
        return True


async def test_a_redis_that_is_killed_and_comes_back_with_its_file_has_every_entry_and_nothing_is_done_twice() -> None:
    with running_redis(*DURABLE) as redis:
        async with bed_on(redis) as bed:
            shop = Shop(bed)
            selling = [asyncio.ensure_future(shop.sell()) for _ in range(4)]
            for n in range(1, KILLS + 1):
                await shop.has_sold(n * ITEMS // (KILLS + 1))
                await asyncio.to_thread(redis.kill)
                await asyncio.to_thread(redis.start)
            await asyncio.gather(*selling)
            assert shop.refused >= KILLS, "it was noticed"
            assert {1} == set(shop.sold.values())
            assert ITEMS == len(shop.sold.keys() | shop.unknown)
            for item in shop.sold:
                found = await states(bed, f"item{item}")
                assert 1 == found.count("done"), (item, found)
                assert set(found) <= {"done", "failed"}


async def test_a_background_run_is_in_the_file_with_its_fence() -> None:
    with running_redis(*DURABLE) as redis:
        async with bed_on(redis) as bed:
            await bed.ledger.add(background(), 10)
            await bed.ledger.begin("b1")
            await bed.ledger.send(effect("b1", start=1))
            redis.kill()
            # A run that has the time waits until it can be written down.
            sending = asyncio.ensure_future(bed.ledger.send(effect("b1", call=2, start=1)))
            await asyncio.sleep(0)
            await asyncio.to_thread(redis.start)
            assert await sending is None
            other = bed.process()
            await bed.let_the_lease_pass("b1")
            assert (start := await other.begin("b1"))
            assert (2, [1, 2]) == (start.number, [entry.call for entry in start.effects])
            assert (await bed.ledger.beat("b1", 1)).fenced


async def test_a_background_run_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_effects, "WAIT_SECONDS", 0.0)
    with running_redis() as redis:
        async with bed_on(redis) as bed:
            await bed.ledger.add(background(), 10)
            await bed.ledger.begin("b1")
            redis.kill()
            assert await refused(bed, "b1", call=1, start=1)


async def test_what_a_replica_of_redis_does_not_have_is_not_sent() -> None:
    with ExitStack() as stack:
        redis = stack.enter_context(running_redis("--repl-diskless-sync-delay", "0", tcp=True))
        replica = stack.enter_context(running_redis("--replicaof", "127.0.0.1", str(redis.port), tcp=True))
        async with bed_on(redis, replicas=1) as bed:
            await bed.ledger.add(background(), 10)

            async def is_in_step() -> bool:
                return await bed.client.wait(1, 100) == 1

            await until(is_in_step)
            await until(lambda: is_sent(bed, 1))
            replica.freeze()
            with within(2.5):
                assert "0 of 1 replica of Redis had it" in await refused(bed, "r2", amount=2)
            with pytest.raises(LedgerUnavailable):
                await bed.ledger.begin("b1")
            assert ["failed"] == await states(bed, "r2")
            assert "" == bed.redis_ledger().place.connection.trouble, "Redis itself is well"
            replica.thaw()
            await until(is_in_step)
            await until(lambda: is_sent(bed, 2))


async def test_a_frozen_redis_is_noticed_soon_and_then_at_once_and_ends_are_written_when_it_is_back() -> None:
    with running_redis() as redis:
        async with bed_on(redis) as bed:
            await bed.ledger.send(effect("r1"))
            redis.freeze()
            with within(2.5):
                refusals = await asyncio.gather(*(refused(bed, f"f{n}", amount=n) for n in range(50)))
            assert all("unreachable" in why for why in refusals)
            bed.ledger.record_end(effect("r1"), "done")
            with within(1.0):
                for n in range(500):
                    await refused(bed, f"g{n}", amount=n)
                for step in (
                    lambda: bed.ledger.add(background(), 1),
                    lambda: bed.ledger.begin("b1"),
                    lambda: bed.ledger.beat("b1", 1),
                    lambda: bed.ledger.status("ada", "b1"),
                    lambda: bed.ledger.of_run("ada", "r1"),
                    lambda: bed.ledger.unknown("ada"),
                    lambda: bed.ledger.list_left_behind(),
                ):
                    with pytest.raises(LedgerUnavailable):
                        await step()
            redis.thaw()
            await is_back(bed)

            async def is_written() -> bool:
                return await bed.client.hget(bed.key("effects", "r1"), "0:1:end") is not None

            await until(is_written)  # nobody has to ask for it
            assert ["done"] == await states(bed, "r1")
            assert [] == await bed.ledger.unknown("ada"), "what came late was not sent, and is known to be so"


async def test_a_redis_that_takes_two_seconds_is_as_good_as_gone_until_it_is_quicker() -> None:
    with running_redis() as redis:
        async with bed_on(redis) as bed:
            await bed.ledger.send(effect("r1"))
            await bed.client.client_pause(2000)
            with within(2.5):
                assert "no answer within 1 s" in await refused(bed, "r2", amount=2)
            with within(1.0):
                await refused(bed, "r3", amount=3)
            await is_back(bed)
            assert await states(bed, "r2") in ([], ["failed"])
            assert await bed.ledger.send(effect("r4", amount=4)) is None


async def test_a_full_redis_lets_nothing_be_sent_and_says_so_until_there_is_room() -> None:
    with running_redis("--maxmemory-policy", "noeviction") as redis:
        async with bed_on(redis) as bed:
            await bed.ledger.send(effect("r1"))
            await bed.ledger.add(background(), 10)
            await bed.ledger.begin("b1")
            redis.fill()
            with within(2.5):
                assert "Redis refuses: command not allowed when used memory" in await refused(bed, "r2", amount=2)
                with pytest.raises(LedgerUnavailable, match="maxmemory"):
                    await bed.ledger.add(background("b2"), 10)
            bed.ledger.record_end(effect("r1"), "done")
            redis.make_room()
            await is_back(bed)
            assert ["done"] == await states(bed, "r1")
            assert await bed.ledger.send(effect("r3", amount=3)) is None
