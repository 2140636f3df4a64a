"""SessionReplicas: which replica holds the variables of a session."""

from __future__ import annotations

import json

from onetool_team.state.presence import Presence
from onetool_team.state.shared_state import SharedState
from onetool_team.state.state_keys import NotSealed, StateKeys

LONGER_SECONDS = 2 * 3600.0
"""In addition to a session's idle time: a run may take long, and its replica reports a session that has ended."""

MOST_REMEMBERED = 10_000
"""Sessions that are claimed again when the shared state has forgotten everything."""


class SessionReplicas:
    """One replica holds each session: the first that was asked to run something in it."""

    def __init__(self, state: SharedState, keys: StateKeys, presence: Presence) -> None:
        """Claim for the replica of *presence*, and again when the shared state has forgotten."""
        self._state = state
        self._keys = keys
        self._me = presence.me
        self._mine: dict[str, float] = {}
        presence.announce_more = self._claim_again

    async def owner(self, seat: str, name: str, idle_seconds: float) -> str:
        """Return the replica that holds session *name* of *seat*, which may be idle so long: this one, if none does.

        Raises:
            StateUnavailable: Nobody knows.
        """
        key, seconds = self._key(seat, name), idle_seconds + LONGER_SECONDS
        owner = await self._read(key)
        if not owner:
            # Another may have been quicker.
            owner = self._me if await self._claim(key, seconds) else await self._read(key) or self._me
        elif owner == self._me:
            await self._state.set(key, self._keys.seal(key, self._me.encode()), seconds)
        if owner == self._me:
            self._remember(key, seconds)
        return owner

    async def forget(self, seat: str, name: str) -> None:
        """Let the next run in the session begin it anew, on any replica.

        Raises:
            StateUnavailable: It is as before.
        """
        key = self._key(seat, name)
        self._mine.pop(key, None)
        await self._state.delete(key)

    def _remember(self, key: str, seconds: float) -> None:
        self._mine[key] = seconds
        if len(self._mine) > MOST_REMEMBERED:
            del self._mine[next(iter(self._mine))]

    async def _read(self, key: str) -> str:
        sealed = await self._state.get(key)
        try:
            return self._keys.unseal(key, sealed).decode() if sealed else ""
        except NotSealed:
            await self._state.delete(key)
            return ""

    async def _claim(self, key: str, seconds: float) -> bool:
        return await self._state.add(key, self._keys.seal(key, self._me.encode()), seconds)

    async def _claim_again(self) -> None:
        for key, seconds in list(self._mine.items()):
            await self._claim(key, seconds)

    def _key(self, seat: str, name: str) -> str:
        return f"session:{self._keys.hide(json.dumps([seat, name]))}"
