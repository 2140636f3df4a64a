"""The book that the replicas and workers of a team share, opened by a test."""

from __future__ import annotations

import asyncio

from ot.errors import LedgerUnavailable
from ot.ledger.background_run import RunStatus
from ot.ledger.redis_ledger import RedisLedger
from ot.ledger.redis_place import RedisPlace
from ot.state.redis_connection import RedisConnection
from ot.state.state_keys import StateKeys


class TeamBook(RedisLedger):
    """The ledger in Redis, with a connection of its own."""

    def __init__(self, url: str, prefix: str, key: str) -> None:
        self._own = RedisConnection(url)
        super().__init__(RedisPlace(self._own, prefix, StateKeys([key])))

    async def known(self, principal: str, id: str) -> RunStatus:
        """Return what is known of a run, as soon as Redis answers."""
        while True:
            try:
                found = await self.status(principal, id)
            except LedgerUnavailable:
                await asyncio.sleep(0.1)
                continue
            assert found, "a run is lost"
            return found

    async def aclose(self) -> None:
        """Let go of the connection as well."""
        await super().aclose()
        await self._own.aclose()
