"""RateWindow: how many runs each principal began within the last minute, on all replicas together.

No run waits for Redis, which may write each command to its disk before it answers: a replica takes a part of a
principal's minute at a time, and the next part while the last half of it is spent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from onetool_team.settings import Quotas

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 0.5
PAUSE_SECONDS = 2.0
"""How long a store that did not answer is left alone."""
NAMESPACE = "runs"
LEASES = 10
"""A lease is this part of what a principal may begin within a minute; quotas that are too small for one are counted
run by run. All replicas together admit at most a lease of each beyond the quota."""
MINUTE = 60.0
REMEMBERED_SECONDS = 1.0
"""How long a refusal is repeated without counting again."""
MOST_REFUSED = 10_000


@dataclass(slots=True)
class _Lease:
    """What a replica may still admit of one principal, and the fetch of more."""

    size: int
    until: float
    left: int
    fetching: asyncio.Task[None] | None = None
    wait: float = 0.0
    """Until when Redis has no more of it."""

    @property
    def is_fetched(self) -> bool:
        return self.fetching is None or self.fetching.done()


class RateWindow:
    """A moving window; without its store it counts for this replica alone, or lets nobody in, as the quota says."""

    def __init__(
        self,
        redis_url: str = "",
        prefix: str = "onetool",
        is_lost: Callable[[], bool] = lambda: False,
        hide: Callable[[str], str] = str,
    ) -> None:
        """Count in memory, or in the Redis at *redis_url* under keys that begin with *prefix*.

        There, *hide* makes names secret. Nothing is asked of a Redis that *is_lost*: others look whether it is back,
        and no run waits for it.

        Raises:
            ValueError: It is not an address.
        """
        self._here = MovingWindowRateLimiter(MemoryStorage())
        self._everywhere = MovingWindowRateLimiter(_redis(redis_url, prefix)) if redis_url else None
        self._is_lost = is_lost
        self._hide = hide
        self._away_until = 0.0
        self._refused: dict[str, float] = {}
        self._leases: dict[str, _Lease] = {}

    async def seconds_to_wait(self, principal: str, quotas: Quotas) -> float:
        """Count a run of *principal* and return nothing, or return after how many seconds there is room for one."""
        key = self._hide(principal)
        if (until := self._refused.get(key, 0.0)) > time.time():
            return until - time.time()
        item = RateLimitItemPerMinute(quotas.runs_per_minute, namespace=NAMESPACE)
        if self._everywhere and time.monotonic() >= self._away_until and not self._is_lost():
            # Where no run may begin without Redis, it is asked for each.
            if (size := quotas.runs_per_minute // LEASES) > 1 and quotas.without_redis == "open":
                # Redis counts leases, each of which is one entry there, however many runs it has.
                leases = RateLimitItemPerMinute(-(-quotas.runs_per_minute // size), namespace=f"leases-{size}")
                found = await self._spend(self._everywhere, leases, key, size)
            else:
                found = await self._asked(self._count(self._everywhere, item, key))
            if found is not None:
                return found
        if self._everywhere and quotas.without_redis == "closed":
            return PAUSE_SECONDS
        return await self._count(self._here, item, key)

    async def _asked[T](self, asking: Awaitable[T]) -> T | None:
        """Return what Redis answers, or nothing where it does not."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asking
        except (StorageError, OSError, TimeoutError) as error:
            self._away_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("runs are counted by this replica alone: Redis is unreachable: %s", error)
            return None

    async def _spend(
        self, limiter: MovingWindowRateLimiter, item: RateLimitItemPerMinute, key: str, size: int
    ) -> float | None:
        """Take a run of the lease, as ``seconds_to_wait``; nothing where Redis has to be asked and is away."""
        now, lease = time.monotonic(), self._leases.get(key)
        if lease is None or lease.size != size or (lease.until <= now and lease.is_fetched):
            self._forget(now)
            # Whoever has not been here for a minute begins with a lease that Redis is told of meanwhile.
            lease = self._leases[key] = _Lease(size, now + MINUTE, size)
            lease.fetching = asyncio.ensure_future(self._fetch(limiter, item, key, lease, given=True))
        if lease.left <= 0 and lease.wait <= now:
            if lease.is_fetched:
                lease.fetching = asyncio.ensure_future(self._fetch(limiter, item, key, lease))
            assert lease.fetching
            await asyncio.wait((lease.fetching,))
        if lease.left > 0:
            lease.left -= 1
            if lease.left < size // 2 and lease.is_fetched and lease.wait <= now:
                lease.fetching = asyncio.ensure_future(self._fetch(limiter, item, key, lease))
            return 0.0
        return max(lease.wait - now, 0.1) if lease.wait > now else None

    async def _fetch(
        self,
        limiter: MovingWindowRateLimiter,
        item: RateLimitItemPerMinute,
        key: str,
        lease: _Lease,
        *,
        given: bool = False,
    ) -> None:
        """Take another lease of the minute; one that is *given* already is only counted."""
        if await self._asked(limiter.hit(item, key)):
            lease.left += 0 if given else lease.size
            lease.until = time.monotonic() + MINUTE
        elif stats := await self._asked(limiter.get_window_stats(item, key)):
            lease.left = 0 if given else lease.left
            lease.wait = time.monotonic() + max(stats.reset_time - time.time(), 0.1)

    def _forget(self, now: float) -> None:
        """Forget leases that are over, once there are many."""
        if len(self._leases) >= MOST_REFUSED:
            kept = {key: lease for key, lease in self._leases.items() if lease.until > now or not lease.is_fetched}
            self._leases = kept

    async def _count(self, limiter: MovingWindowRateLimiter, item: RateLimitItemPerMinute, key: str) -> float:
        if await limiter.hit(item, key):
            return 0.0
        found = await limiter.get_window_stats(item, key)
        seconds = max(found.reset_time - time.time(), 0.1)
        if len(self._refused) >= MOST_REFUSED:
            self._refused.clear()
        self._refused[key] = time.time() + min(seconds, REMEMBERED_SECONDS)
        return seconds

    async def aclose(self) -> None:
        """Let go of connections."""
        fetching = [lease.fetching for lease in self._leases.values() if lease.fetching]
        for fetch in fetching:
            fetch.cancel()
        await asyncio.gather(*fetching, return_exceptions=True)
        if self._everywhere and isinstance(self._everywhere.storage, RedisStorage):
            await self._everywhere.storage.bridge.get_connection().aclose()  # pyright: ignore


def _redis(url: str, prefix: str) -> RedisStorage:
    scheme, _, rest = url.partition("://")
    named = {"unix": "redis+unix", "valkey": "redis", "valkeys": "rediss"}.get(scheme, scheme)
    return RedisStorage(
        f"async+{named}://{rest}",
        wrap_exceptions=True,
        implementation="redispy",
        key_prefix=f"{prefix}:quota",
        socket_timeout=ANSWER_SECONDS,
        socket_connect_timeout=ANSWER_SECONDS,
    )
