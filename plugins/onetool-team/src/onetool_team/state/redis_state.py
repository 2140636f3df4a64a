"""RedisState: what replicas share, in Redis or Valkey."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, cast

from onetool_team.state.redis_connection import ANSWER_SECONDS, RedisConnection
from onetool_team.state.shared_state import StateUnavailable

logger = logging.getLogger(__name__)

LOCK_POLL_SECONDS = 0.02
SLOWEST_LOCK_POLL_SECONDS = 0.2
MOST_MESSAGES = 10_000
"""In one mailbox: whoever should read it is gone."""

RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
SEND = """
if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[3]) then return redis.error_reply('FULL the mailbox is full') end
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
"""
NOW = """
local seconds, micro = unpack(redis.call('TIME'))
local now = seconds + micro / 1000000
"""
JOIN = f"""{NOW}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
return 1
"""
MEMBERS = f"{NOW} return redis.call('ZRANGEBYSCORE', KEYS[1], now, '+inf')"


class RedisState:
    """Values, locks and mailboxes under one prefix; a Redis that does not answer is left alone until it does again."""

    replicas = True

    def __init__(self, url: str, prefix: str = "onetool", *, answer_seconds: float = ANSWER_SECONDS) -> None:
        """Connect to *url* when first needed: ``redis://``, ``rediss://`` or ``unix://``, with user and password.

        Raises:
            ValueError: It is not an address.
        """
        self.prefix = prefix
        self.connection = RedisConnection(url, answer_seconds=answer_seconds)
        self._redis = self.connection.client
        self._answer = self.connection.answer
        self._release = self._redis.register_script(RELEASE)
        self._send = self._redis.register_script(SEND)
        self._join = self._redis.register_script(JOIN)
        self._members = self._redis.register_script(MEMBERS)

    @property
    def trouble(self) -> str:
        """Why Redis cannot be reached, and since when; empty while it can be."""
        return self.connection.trouble

    async def get(self, key: str) -> bytes | None:
        """Return the value, or nothing."""
        return await self._answer(self._redis.get(self._key(key)))

    async def set(self, key: str, value: bytes, seconds: float | None = None) -> None:
        """Keep *value*, for *seconds* if given."""
        await self._answer(self._redis.set(self._key(key), value, px=_expiry(seconds)))

    async def add(self, key: str, value: bytes, seconds: float | None = None) -> bool:
        """Keep *value* if the key has none, and return whether it was kept."""
        return bool(await self._answer(self._redis.set(self._key(key), value, px=_expiry(seconds), nx=True)))

    async def pop(self, key: str) -> bytes | None:
        """Return the value and forget it, in one step."""
        return await self._answer(self._redis.getdel(self._key(key)))

    async def delete(self, key: str) -> None:
        """Forget the value."""
        await self._answer(self._redis.delete(self._key(key)))

    async def count(self, key: str) -> int:
        """Add one to the number of *key*, and return it."""
        return await self._answer(self._redis.incr(self._key(key)))

    async def join(self, key: str, member: str, seconds: float) -> None:
        """Count *member* among those of *key*, by the clock of Redis."""
        await self._answer(self._join(keys=[self._key(key)], args=[member, seconds]))

    async def members(self, key: str) -> list[str]:
        """Return the members of *key* whose time is not over."""
        return [member.decode() for member in await self._answer(self._members(keys=[self._key(key)]))]

    @asynccontextmanager
    async def lock(self, key: str, seconds: float) -> AsyncGenerator[None]:
        """Hold the lock of *key* in the block, at most *seconds*; one that another has taken since is not let go of."""
        token, pause = secrets.token_hex(16).encode(), LOCK_POLL_SECONDS
        while not await self.add(f"lock:{key}", token, seconds):
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, SLOWEST_LOCK_POLL_SECONDS)
        try:
            yield
        finally:
            try:
                await self._answer(self._release(keys=[self._key(f"lock:{key}")], args=[token]))
            except StateUnavailable as error:
                logger.warning("a lock in the shared state ends by itself within %g s: %s", seconds, error)

    async def send(self, mailbox: str, message: bytes, seconds: float) -> None:
        """Put *message* into a mailbox, which is forgotten when nobody has read it for *seconds*."""
        arguments = [message, _milliseconds(seconds), MOST_MESSAGES]
        await self._answer(self._send(keys=[self._key(f"mail:{mailbox}")], args=arguments))

    async def receive(self, mailbox: str, seconds: float) -> bytes | None:
        """Return the oldest message of a mailbox, or nothing if none comes within *seconds*."""
        waiting = self.connection.waiting.blpop([self._key(f"mail:{mailbox}")], timeout=max(seconds, 0.001))
        found = await self._answer(cast("Awaitable[Any]", waiting), self.connection.seconds + seconds)
        return found[1] if found else None

    async def aclose(self) -> None:
        """Let go of connections."""
        await self.connection.aclose()

    # ---------------------------------------------------------------- how

    def _key(self, name: str) -> str:
        return f"{self.prefix}:{name}"


def _milliseconds(seconds: float) -> int:
    return max(1, round(seconds * 1000))


def _expiry(seconds: float | None) -> int | None:
    return None if seconds is None else _milliseconds(seconds)
