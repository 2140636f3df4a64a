"""PostgresBed: the ledger of a team in a real PostgreSQL, as several processes see it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from ledger.ledger_beds import LedgerBed, until
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_place import PostgresPlace
from onetool_team.ledger.postgres_sessions import PostgresSessions, Rows
from onetool_team.state.state_keys import StateKeys
from ot.ledger.run_book import LEASE_SECONDS
from pace import PATIENCE

KEYS = StateKeys(["the key of all processes, 32 characters at least"])
DURABLE = ("fsync=on",)
HOLD = """
CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN PERFORM pg_advisory_xact_lock_shared(4711); RETURN NEW; END';
CREATE TRIGGER hold BEFORE INSERT ON effects FOR EACH ROW WHEN (NEW.state = 'sent') EXECUTE FUNCTION hold();
"""


class PostgresBed(LedgerBed):
    """The PostgreSQL of a team; each process has connections of its own."""

    def __init__(self, url: str, schema: str = "onetool", *, seconds: float = PATIENCE, patience: float = 0.0) -> None:
        self._url, self.schema, self._seconds, self._patience = url, schema, seconds, patience
        self._looking: PostgresSessions | None = None
        super().__init__()

    @property
    def url(self) -> str:
        """The address of PostgreSQL."""
        return self._url

    @property
    def conninfo(self) -> str:
        """How a ledger connects there."""
        return PostgresSessions(self._url, self.schema).conninfo

    def _made(self) -> PostgresLedger:
        return self.postgres_ledger()

    def postgres_ledger(self, keys: StateKeys = KEYS, patience: float | None = None) -> PostgresLedger:
        """Return the ledger of one more process, with *keys* of its own."""
        sessions = PostgresSessions(self._url, self.schema, answer_seconds=self._seconds)
        patience = self._patience if patience is None else patience
        return PostgresLedger(sessions, PostgresPlace(keys), clock=lambda: self.now, patience=patience)

    def worker(self, **options: Any) -> PostgresLedger:
        """Return the ledger of one more process that is closed with the bed."""
        self._open.append(made := self.postgres_ledger(**options))
        return made

    async def sql(self, text: str, **given: Any) -> Rows:
        """Return the rows of a statement, as an attacker or an operator gives one."""
        if self._looking is None:
            self._looking = PostgresSessions(self._url, self.schema, answer_seconds=PATIENCE)
        return (await self._looking.take((text, given)))[0]

    async def let_the_lease_pass(self, id: str) -> None:
        past = f"seen - interval '{LEASE_SECONDS + 1} s'"
        await self.sql(f"UPDATE run_beats SET seen = {past} WHERE run = %(run)s", run=id)

    async def aclose(self) -> None:
        await super().aclose()
        if self._looking:
            await self._looking.aclose()


async def waiting(bed: PostgresBed, event: str, count: int = 1) -> list[int]:
    """Return the processes of PostgreSQL that wait for something, once there are so many, or none."""
    asked = """SELECT pid FROM pg_stat_activity WHERE application_name = 'onetool' AND pid <> pg_backend_pid()
        AND (wait_event_type = %(event)s OR wait_event = %(event)s)"""
    found: list[int] = []

    async def are_there() -> bool:
        found[:] = [pid for (pid,) in await bed.sql(asked, event=event)]
        return len(found) >= count if count else not found

    await until(are_there)
    return found


@asynccontextmanager
async def held(bed: PostgresBed) -> AsyncGenerator[None]:
    """Let no call become written down in the block, although PostgreSQL is at it."""
    for statement in HOLD.split(";\n"):
        if statement.strip():
            await bed.sql(statement)
    async with await psycopg.AsyncConnection.connect(bed.url, autocommit=True) as holder:
        await holder.execute("SELECT pg_advisory_lock(4711)")
        yield
