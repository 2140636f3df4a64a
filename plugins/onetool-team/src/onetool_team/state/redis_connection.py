"""RedisConnection: one process's way to Redis or Valkey; a Redis that does not answer is left alone until it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as TooSlow

from onetool_team.state.circuit import Circuit
from onetool_team.state.shared_state import StateUnavailable

REDIS_FAILURES = (RedisError, OSError, TimeoutError)
"""What a client of Redis raises when it has no answer, for those who use another library's."""
ANSWER_SECONDS = 1.0
"""How long Redis may take for one answer: all that a Redis that is slow or gone costs a run, once."""
CONNECTIONS = 32
WAITING_CONNECTIONS = 256
"""For those who wait for a message: each holds a connection meanwhile."""


class RedisConnection:
    """Asks Redis, and once that fails, asks nothing more until it answers again."""

    def __init__(self, url: str, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Connect to *url* when first needed: ``redis://``, ``rediss://`` or ``unix://``, with user and password.

        Raises:
            ValueError: It is not an address.
        """
        self.seconds = answer_seconds
        self.client = Redis(connection_pool=_pool(url, CONNECTIONS, answer_seconds))
        self.waiting = Redis(connection_pool=_pool(url, WAITING_CONNECTIONS, None, connect_seconds=answer_seconds))
        """For commands that block until there is something to return."""
        self._circuit = Circuit(self._ping)

    @property
    def trouble(self) -> str:
        """Why Redis cannot be reached, and since when; empty while it can be."""
        return self._circuit.trouble

    async def answer(self, asked: Awaitable[Any], seconds: float = 0.0) -> Any:
        """Return Redis's answer.

        Raises:
            StateUnavailable: There is none, or it is a refusal.
        """
        if self.trouble:
            _drop(asked)
            raise StateUnavailable(self.trouble)
        try:
            async with asyncio.timeout(seconds or self.seconds):
                return await asked
        except (NoConnection, TooSlow, TimeoutError, OSError) as error:
            raise StateUnavailable(self._circuit.open(_words(error, self.seconds))) from None
        except ResponseError as error:  # full, read-only, not allowed: Redis itself is well
            raise StateUnavailable(f"Redis refuses: {str(error)[:200]}") from None
        except RedisError as error:
            raise StateUnavailable(f"Redis failed: {type(error).__name__}: {str(error)[:200]}") from None

    async def aclose(self) -> None:
        """Let go of connections."""
        await self._circuit.aclose()
        await self.client.aclose(close_connection_pool=True)
        await self.waiting.aclose(close_connection_pool=True)

    async def _ping(self) -> None:
        try:
            async with asyncio.timeout(self.seconds):
                await cast("Any", self.client).ping()
        except (RedisError, OSError, TimeoutError) as error:
            raise StateUnavailable(_words(error, self.seconds)) from None


def _pool(
    url: str, most: int, answer_seconds: float | None, *, connect_seconds: float | None = None
) -> BlockingConnectionPool:
    # Nothing is sent twice: a message whose answer was lost may have arrived.
    return cast("Any", BlockingConnectionPool).from_url(
        url,
        max_connections=most,
        timeout=answer_seconds or connect_seconds,
        socket_timeout=answer_seconds,
        socket_connect_timeout=answer_seconds or connect_seconds,
        retry=Retry(NoBackoff(), 0),
        client_name="onetool",
    )


def _drop(asked: Awaitable[Any]) -> None:
    """Let go of a command that is not sent; without this, it would be reported as never awaited."""
    close = getattr(asked, "close", None)
    if close:
        close()


def _words(error: Exception, seconds: float) -> str:
    """Say what went wrong; an address may hold a password, so only Redis's own words and the class are told."""
    if isinstance(error, (TimeoutError, TooSlow)):
        return f"no answer within {seconds:g} s"
    return f"{type(error).__name__}: {str(error)[:200]}"
