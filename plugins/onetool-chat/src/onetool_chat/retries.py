"""Retries: the one place where a request to a model's service is made again."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ot.errors import ChatUnavailable, RateLimited
from ot.processes.backoff import Backoff

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Retries:
    """How often, and after which pause, a request is made again."""

    rate_limits: int = 5
    failures: int = 2
    pause_seconds: float = 0.5
    longest_seconds: float = 30.0

    async def run[T](self, attempt: Callable[[], Awaitable[T]], deadline: float) -> T:
        """Return what *attempt* returns, trying again while the service is unreachable and *deadline* is far enough."""
        limited = failed = 0
        backoff = Backoff(first=self.pause_seconds, longest=self.longest_seconds, free=0)
        while True:
            try:
                return await attempt()
            except ChatUnavailable as error:
                is_limit = isinstance(error, RateLimited)
                limited, failed = limited + is_limit, failed + (not is_limit)
                if not error.again or limited > self.rate_limits or failed > self.failures:
                    raise
                backoff.note_failure()
                told = error.retry_after if isinstance(error, RateLimited) else None
                pause = backoff.seconds_left if told is None else told + random.uniform(0, self.pause_seconds)
                if time.monotonic() + pause > deadline:
                    raise
                logger.info("%s; tried again in %.1f s", error, pause)
            await asyncio.sleep(pause)
