"""AlwaysAllowed: the tools that each principal has allowed for good, known to all replicas."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass

from ot.state.shared_state import SharedState, StateUnavailable
from ot.state.state_keys import NotSealed, StateKeys

logger = logging.getLogger(__name__)

MOST_PATTERNS = 1000
MOST_REMEMBERED = 10_000
FRESH_SECONDS = 2.0
"""How long a replica goes on with what it read: a run that follows another asks nobody."""
LOCK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Remembered:
    patterns: tuple[str, ...]
    until: float


class AlwaysAllowed:
    """Patterns like those of ``policy.allow``, by principal; sealed, so that none is added behind our back."""

    def __init__(self, state: SharedState, keys: StateKeys) -> None:
        """Keep them in *state*, sealed with *keys*."""
        self._state = state
        self._keys = keys
        self._remembered: dict[str, _Remembered] = {}

    async def patterns(self, principal: str) -> tuple[str, ...]:
        """Return what *principal* has allowed for good, in the order it was said.

        Raises:
            StateUnavailable: Nobody knows now; whoever asks the user again does no harm.
        """
        known = self._remembered.get(key := self._key(principal))
        if known and known.until > asyncio.get_running_loop().time():
            return known.patterns
        return self._remember(key, await self._read(key))

    async def add(self, principal: str, pattern: str) -> None:
        """Allow *pattern* to *principal* for good.

        Raises:
            StateUnavailable: It was not kept.
        """
        key = self._key(principal)
        async with self._state.lock(key, LOCK_SECONDS):
            before = await self._read(key)
            if pattern not in before:
                await self._write(key, (*before, pattern))

    async def remove(self, principal: str, pattern: str) -> None:
        """Ask *principal* again about what *pattern* allowed.

        Raises:
            StateUnavailable: It is allowed as before.
        """
        key = self._key(principal)
        async with self._state.lock(key, LOCK_SECONDS):
            await self._write(key, tuple(one for one in await self._read(key) if one != pattern))

    async def _read(self, key: str) -> tuple[str, ...]:
        sealed = await self._state.get(key)
        try:
            return tuple(json.loads(self._keys.unseal(key, sealed))) if sealed else ()
        except NotSealed as error:
            logger.warning("what somebody always allowed is not used: %s", error)
            return ()

    async def _write(self, key: str, patterns: tuple[str, ...]) -> None:
        if len(patterns) > MOST_PATTERNS:
            raise StateUnavailable(f"{MOST_PATTERNS} tools are always allowed already")
        await self._state.set(key, self._keys.seal(key, json.dumps(patterns).encode()))
        self._remember(key, patterns)

    def _remember(self, key: str, patterns: tuple[str, ...]) -> tuple[str, ...]:
        if len(self._remembered) >= MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[key] = _Remembered(patterns, asyncio.get_running_loop().time() + FRESH_SECONDS)
        return patterns

    def _key(self, principal: str) -> str:
        return f"always:{self._keys.hide(principal)}"
