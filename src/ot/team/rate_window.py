"""RateWindow: how many runs each principal began within the last minute, on all replicas together."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from limits.errors import StorageError

from ot.config.team_settings import Quotas

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 0.5
PAUSE_SECONDS = 2.0
"""How long a store that did not answer is left alone."""
NAMESPACE = "runs"
REMEMBERED_SECONDS = 1.0
"""How long a refusal is repeated without counting again."""
MOST_REFUSED = 10_000


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

    async def seconds_to_wait(self, principal: str, quotas: Quotas) -> float:
        """Count a run of *principal* and return nothing, or return after how many seconds there is room for one."""
        key = self._hide(principal)
        if (until := self._refused.get(key, 0.0)) > time.time():
            return until - time.time()
        item = RateLimitItemPerMinute(quotas.runs_per_minute, namespace=NAMESPACE)
        if self._everywhere and time.monotonic() >= self._away_until and not self._is_lost():
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._count(self._everywhere, item, key)
            except (StorageError, OSError, TimeoutError) as error:
                self._away_until = time.monotonic() + PAUSE_SECONDS
                logger.warning("runs are counted by this replica alone: Redis is unreachable: %s", error)
        if self._everywhere and quotas.without_redis == "closed":
            return PAUSE_SECONDS
        return await self._count(self._here, item, key)

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
