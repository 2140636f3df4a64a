"""RowsBed: the tables of a team's people in a real PostgreSQL, as several processes see them."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

from ledger.postgres_bed import KEYS
from onetool_team.ledger.postgres_sessions import PostgresSessions, Rows
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.state_keys import StateKeys
from pace import PATIENCE

TABLES = """
SELECT table_name FROM information_schema.columns
WHERE table_schema = current_schema() AND column_name = 'principal' ORDER BY 1
"""


class RowsBed:
    """A schema of its own; each process has connections of its own."""

    def __init__(self, url: str, schema: str = "") -> None:
        self.url, self.schema = url, schema or f"team {token_hex(8)}"
        self._open: list[PostgresSessions] = []

    def process(self, keys: StateKeys = KEYS, seconds: float = PATIENCE) -> TeamRows:
        """Return the rows as one more process has them."""
        self._open.append(sessions := PostgresSessions(self.url, self.schema, answer_seconds=seconds))
        return TeamRows(sessions, keys)

    async def sql(self, text: str, **given: Any) -> Rows:
        """Return the rows of a statement, as an attacker or an operator gives one."""
        if not self._open:
            self.process()
        return (await self._open[0].take((text, given)))[0]

    async def dump(self) -> bytes:
        """Return all rows of the tables that have a person's, as an operator reads them."""
        tables = [table for (table,) in await self.sql(TABLES)]
        assert tables
        return b"\n".join([str(await self.sql(f"SELECT t::text FROM {table} t")).encode() for table in tables])

    async def aclose(self) -> None:
        """End all processes."""
        for sessions in self._open:
            await sessions.aclose()
