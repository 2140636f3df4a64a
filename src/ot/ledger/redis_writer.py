"""RedisWriter: one process that writes to the ledger in Redis, known to be alive by its beats."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

from ot.errors import LedgerUnavailable
from ot.ledger.redis_place import RedisPlace
from ot.ledger.redis_scripts import ALIVE, GONE

BEAT_SECONDS = 1.0


class RedisWriter:
    """Beats from the first write on until it is closed, or killed."""

    def __init__(self, place: RedisPlace) -> None:
        """Be nobody yet."""
        self.name = secrets.token_hex(16)
        self._place = place
        self._beating: asyncio.Task[None] | None = None

    @property
    def key(self) -> str:
        """What the keys of writers begin with."""
        return self._place.key("writer") + ":"

    def start(self) -> None:
        """Show that this writer is alive, from now on."""
        if self._beating is None:
            self._beating = asyncio.ensure_future(self._beat())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            with contextlib.suppress(LedgerUnavailable):
                await self._place.step(ALIVE, [self.key], [self.name])

    async def aclose(self) -> None:
        """Show that this writer has ended."""
        if self._beating is None:
            return
        self._beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._beating
        self._beating = None
        with contextlib.suppress(LedgerUnavailable):
            await self._place.step(GONE, [self.key], [self.name])
