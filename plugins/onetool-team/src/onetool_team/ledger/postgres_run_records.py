"""PostgresRunRecords: the runs and calls of everybody in a team's PostgreSQL, which has no names in plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onetool_team.ledger import postgres_sql as sql
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_sessions import Rows
from onetool_team.ledger.run_records import MOST_LISTED
from ot.ledger.background_run import RunStatus

LATEST = """
SELECT id, principal FROM (SELECT id, principal, created FROM runs WHERE principal = ANY (%(people)s)
  ORDER BY created DESC, id LIMIT %(most)s) latest
UNION SELECT id, principal FROM runs WHERE ended IS NULL
"""
WHOSE = "SELECT principal FROM runs WHERE id = %(id)s UNION SELECT principal FROM effects WHERE run = %(id)s"
WORKERS = f"SELECT name, extract(epoch FROM seen)::float8 FROM writers WHERE name <> '' AND {sql.ALIVE} ORDER BY name"
COUNT = """
SELECT (SELECT count(*) FROM runs WHERE principal = %(who)s), (SELECT count(*) FROM effects WHERE principal = %(who)s)
"""
FORGET_CALLS = """
DELETE FROM effects WHERE (run, start, call) IN
  (SELECT run, start, call FROM effects WHERE principal = %(who)s LIMIT 1000) RETURNING 1
"""
FORGET_RUNS = """
WITH gone AS (DELETE FROM runs WHERE principal = %(who)s RETURNING id)
DELETE FROM run_beats WHERE run IN (SELECT id FROM gone)
"""


class PostgresRunRecords:
    """Reads what a PostgresLedger wrote."""

    def __init__(self, ledger: PostgresLedger) -> None:
        """Use the sessions and the keys of *ledger*."""
        self._ledger = ledger

    async def latest(self, people: Sequence[str], most: int = MOST_LISTED) -> list[RunStatus]:
        """Return the latest runs of *people*, and all that have not ended."""
        who = self._ledger.place.who
        rows = await self._rows(LATEST, people=[who(principal) for principal in people], most=most)
        found = [await self._ledger.status_of(principal, id) for id, principal in rows]
        return sorted((status for status in found if status), key=lambda status: -status.run.created)

    async def whose(self, id: str, people: Sequence[str]) -> str:
        """Return who has a run."""
        names = {self._ledger.place.who(principal): principal for principal in people}
        for (who,) in await self._rows(WHOSE, id=self._ledger.place.name(id)):
            if status := await self._ledger.status_of(who, id):
                return status.run.principal
            if who in names:
                return names[who]
        return ""

    async def count(self, principal: str) -> Mapping[str, int]:
        """Return how much is kept."""
        ((runs, calls),) = await self._rows(COUNT, who=self._ledger.place.who(principal))
        return {"runs": runs, "calls": calls}

    async def forget(self, principal: str) -> None:
        """Keep nothing of *principal*."""
        who = self._ledger.place.who(principal)
        await self._rows(FORGET_RUNS, who=who)
        while await self._rows(FORGET_CALLS, who=who):
            pass

    async def list_workers(self) -> list[dict[str, object]]:
        """Return the workers that are alive, and when each was seen."""
        return [{"name": name, "seen": seen} for name, seen in await self._rows(WORKERS)]

    async def _rows(self, step: str, **given: Any) -> Rows:
        return (await self._ledger.sessions.take((step, given)))[0]
