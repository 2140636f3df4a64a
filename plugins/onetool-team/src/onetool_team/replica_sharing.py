"""ReplicaSharing: what the replicas and workers of a team's server share with each other, for their hosts."""

from __future__ import annotations

import asyncio
from pathlib import Path

from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.logins.shared_token_store import StateRecords, shared_token_stores
from onetool_team.postgres.logins import PostgresLogins
from onetool_team.postgres.notes import PostgresNotes
from onetool_team.postgres.pins import PinRows, PostgresPins
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.open_state import Shared
from onetool_team.state.revisions import Revisions
from ot.config.models import LedgerSettings
from ot.ledger.run_book import KeptLedger
from ot.notes.kept_notes import KeptNotes

CATALOGUE = "catalogue"
"""The topic of packs, and of what servers offer: each replica that reads another revision reloads."""


class ReplicaSharing:
    """Keeps news of the catalogue in Redis; to be made in the event loop that it is used in."""

    def __init__(
        self,
        shared: Shared,
        postgres: PostgresSessions | None = None,
        rows: TeamRows | None = None,
        directory: Path = Path(),
    ) -> None:
        """Look for news from now on.

        The ledger is in *postgres*, what people keep in *rows*; without them, logins are in Redis, and all else in
        files. What files of *directory* say that is approved is taken over.
        """
        records = PostgresLogins(rows) if rows else StateRecords(shared.state, shared.keys)
        self.logins = shared_token_stores(records)
        self.pins = PostgresPins(PinRows(rows, directory)) if rows else None
        self.hide = shared.keys.hide
        self._keys = shared.keys
        self._postgres = postgres
        self._rows = rows
        self._loop = asyncio.get_running_loop()
        self._revisions = Revisions(shared.state, [CATALOGUE])
        self._revisions.start()

    @property
    def catalogue_revision(self) -> int:
        """The number of the newest catalogue that was heard of."""
        return self._revisions.number(CATALOGUE)

    def open_ledger(self, settings: LedgerSettings) -> KeptLedger | None:
        """Return the ledger in PostgreSQL, if there is one."""
        if self._postgres is None:
            return None
        return PostgresLedger(self._postgres, PostgresPlace(self._keys), days=settings.days)

    def open_notes(self, principal: str, most_bytes: int, /) -> KeptNotes | None:
        """Return the notes of *principal* in PostgreSQL, if there is one."""
        return PostgresNotes(self._rows, principal, most_bytes, self._loop) if self._rows else None

    async def tell_catalogue(self) -> None:
        """Let the other replicas know that packs, or what servers offer, have changed here."""
        await self._revisions.advance(CATALOGUE)

    async def aclose(self) -> None:
        """Look for news no more."""
        await self._revisions.aclose()
        if self.pins:
            await self.pins.aclose()
        if self._rows:
            await self._rows.sessions.aclose()
