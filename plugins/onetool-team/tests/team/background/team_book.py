"""The book that the replicas and workers of a team share, opened by a test."""

from __future__ import annotations

import asyncio

from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.state.state_keys import StateKeys
from ot.errors import LedgerUnavailable
from ot.ledger.background_run import RunStatus
from pace import PATIENCE


class TeamBook(PostgresLedger):
    """The ledger in PostgreSQL, with connections of its own."""

    def __init__(self, url: str, prefix: str, key: str) -> None:
        # What is held against the answers here is not how soon they come.
        super().__init__(PostgresSessions(url, prefix, answer_seconds=PATIENCE), PostgresPlace(StateKeys([key])))

    async def known(self, principal: str, id: str) -> RunStatus:
        """Return what is known of a run, as soon as PostgreSQL answers."""
        while True:
            try:
                found = await self.status(principal, id)
            except LedgerUnavailable:
                await asyncio.sleep(0.1)
                continue
            assert found, "a run is lost"
            return found
