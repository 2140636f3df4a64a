"""PostgresWriter: one process that writes to the ledger in PostgreSQL, known to be alive by its beats."""

from __future__ import annotations

import asyncio
import random
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from onetool_team.ledger import postgres_sql as sql
from onetool_team.ledger.postgres_sessions import MALFORMED, PostgresSessions
from ot.errors import LedgerUnavailable

BEAT_SECONDS = 1.0
CLEAN_SECONDS = 3600.0
LOT = 1000
"""How much is deleted in one step, so that none takes long."""
MOST_OF_ONE = 100_000
"""How many calls of one person are kept; whoever makes more loses his oldest."""


class PostgresWriter:
    """Beats from the first write on until it is closed, or killed; and removes what has been kept long enough."""

    def __init__(self, sessions: PostgresSessions, days: int) -> None:
        """Be nobody yet; keep what has ended for so many *days*, or for ever."""
        self.id = uuid.uuid4()
        self.name = ""
        """What an operator sees of a worker; replicas have none."""
        self._sessions = sessions
        self._days = days
        self._beginning = asyncio.Lock()
        self._tasks: list[asyncio.Future[None]] = []
        self._written: dict[bytes, int] = {}
        """How many calls of each person this process wrote down since it last looked whether they are too many."""

    async def begin(self) -> None:
        """Show that this writer is alive, from now on.

        Raises:
            LedgerUnavailable: It could not be written.
        """
        if self._tasks:
            return
        async with self._beginning:
            if not self._tasks:
                await self._sessions.take((sql.LIVE, {"me": self.id, "name": self.name}))
                self._tasks = [asyncio.ensure_future(self._beat()), asyncio.ensure_future(self._clean())]

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            with suppress(LedgerUnavailable):
                await self._sessions.take((sql.BEAT_QUIETLY, {}), (sql.LIVE, {"me": self.id, "name": self.name}))

    async def _clean(self) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.0, 2 * CLEAN_SECONDS))
            with suppress(LedgerUnavailable, *MALFORMED):
                await self.clean(datetime.now(UTC))

    async def clean(self, now: datetime) -> None:
        """Remove what ended too long before *now*, a little at a time.

        Raises:
            LedgerUnavailable: It could not be done.
        """
        await self._sessions.take((sql.CLEAN_WRITERS, {}))
        given = {"before": now - timedelta(days=self._days), "most": LOT}
        for step in (sql.CLEAN_EFFECTS, sql.CLEAN_RUNS) if self._days else ():
            while len((await self._sessions.take((step, given)))[0]) == LOT:
                pass

    def count(self, who: bytes) -> None:
        """Note that a call of *who* was written down; after each LOT, those that are too many are removed."""
        self._written[who] = self._written.get(who, 0) + 1
        if self._written[who] >= LOT:
            del self._written[who]
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(asyncio.ensure_future(self._trim(who)))

    async def _trim(self, who: bytes) -> None:
        with suppress(LedgerUnavailable, *MALFORMED):
            (found,) = await self._sessions.take((sql.OLDEST_OF_ONE, {"who": who, "kept": MOST_OF_ONE}))
            for (before,) in found:
                given = {"who": who, "before": before, "most": LOT}
                while len((await self._sessions.take((sql.TRIM_EFFECTS, given)))[0]) == LOT:
                    pass

    async def aclose(self) -> None:
        """Show that this writer has ended."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if tasks:
            with suppress(LedgerUnavailable):
                await self._sessions.take((sql.DIE, {"me": self.id}))
