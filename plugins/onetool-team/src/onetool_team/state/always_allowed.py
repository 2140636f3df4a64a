"""AlwaysAllowed: the tools that each principal has allowed for good, known to all replicas."""

from __future__ import annotations

import json
import logging
import time

from onetool_team.kept_answers import KeptAnswers
from onetool_team.state.shared_state import SharedState, StateUnavailable
from onetool_team.state.state_keys import NotSealed, StateKeys

logger = logging.getLogger(__name__)

MOST_PATTERNS = 1000
FRESH_SECONDS = 2.0
"""How long a replica goes on with what it read: a run that follows another asks nobody."""
LOCK_SECONDS = 10.0


class AlwaysAllowed:
    """Patterns like those of ``policy.allow``, by principal; sealed, so that none is added behind our back."""

    def __init__(self, state: SharedState, keys: StateKeys) -> None:
        """Keep them in *state*, sealed with *keys*."""
        self._state = state
        self._keys = keys
        self._recent = KeptAnswers[tuple[str, ...]](time.monotonic)

    async def patterns(self, principal: str) -> tuple[str, ...]:
        """Return what *principal* has allowed for good, in the order it was said.

        Raises:
            StateUnavailable: Nobody knows now; whoever asks the user again does no harm.
        """
        known = self._recent.get(key := self._key(principal))
        if known is None:
            known = await self._read(key)
            self._recent.put(key, known, time.monotonic() + FRESH_SECONDS)
        return known

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

    async def forget(self, principal: str, server: str = "") -> tuple[str, ...]:
        """Ask *principal* again about everything, or about the tools of *server*; return what is asked about.

        Raises:
            StateUnavailable: It is allowed as before.
        """
        key = self._key(principal)
        async with self._state.lock(key, LOCK_SECONDS):
            before = await self._read(key)
            kept = tuple(one for one in before if server and one.partition(".")[0] != server)
            if kept:
                await self._write(key, kept)
            else:
                await self._state.delete(key)
                self._recent.forget(key)
        return tuple(one for one in before if one not in kept)

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
        self._recent.put(key, patterns, time.monotonic() + FRESH_SECONDS)

    def _key(self, principal: str) -> str:
        return f"always:{self._keys.hide(principal)}"
