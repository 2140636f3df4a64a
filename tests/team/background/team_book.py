"""The book that the replicas and workers of a team share, opened by a test."""

from __future__ import annotations

from ot.ledger.redis_ledger import RedisLedger
from ot.ledger.redis_place import RedisPlace
from ot.state.redis_connection import RedisConnection
from ot.state.state_keys import StateKeys


class TeamBook(RedisLedger):
    """The ledger in Redis, with a connection of its own."""

    def __init__(self, url: str, prefix: str, key: str) -> None:
        self._own = RedisConnection(url)
        super().__init__(RedisPlace(self._own, prefix, StateKeys([key])))

    async def aclose(self) -> None:
        """Let go of the connection as well."""
        await super().aclose()
        await self._own.aclose()
