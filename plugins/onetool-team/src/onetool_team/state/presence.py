"""Presence: tells the other replicas that this one is alive, and tells whether they are."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable

from onetool_team.state.shared_state import SharedState, StateUnavailable

BEAT_SECONDS = 2.0
ALIVE_SECONDS = 6.0
"""A replica that has not been heard of for so long is gone."""
REPLICAS = "replicas"
"""The key that counts them."""


class Presence:
    """One replica among others, from its start to its end: a process that starts again is another one."""

    def __init__(self, state: SharedState) -> None:
        """Be nobody yet; ``start`` announces it."""
        self.me = secrets.token_hex(8)
        self._state = state
        self._beating: asyncio.Task[None] | None = None
        self.announce_more: Callable[[], Awaitable[None]] | None = None
        """Called when the shared state has lost what it knew: Redis was restarted empty."""

    async def start(self) -> None:
        """Announce this replica, now and from now on."""
        with contextlib.suppress(StateUnavailable):
            await self._announce()
        self._beating = asyncio.ensure_future(self._beat())

    async def is_alive(self, replica: str) -> bool:
        """Return whether *replica* was heard of lately.

        Raises:
            StateUnavailable: Nobody knows.
        """
        return await self._state.get(_key(replica)) is not None

    async def aclose(self) -> None:
        """Say that this replica ends."""
        if self._beating:
            self._beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beating
        with contextlib.suppress(StateUnavailable):
            await self._state.delete(_key(self.me))
            await self._state.join(REPLICAS, self.me, 0)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            with contextlib.suppress(StateUnavailable):
                known = await self.is_alive(self.me)
                await self._announce()
                if not known and self.announce_more:
                    await self.announce_more()

    async def _announce(self) -> None:
        await self._state.set(_key(self.me), b"1", ALIVE_SECONDS)
        await self._state.join(REPLICAS, self.me, ALIVE_SECONDS)


def _key(replica: str) -> str:
    return f"replica:{replica}"
