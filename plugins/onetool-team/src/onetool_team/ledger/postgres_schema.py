"""The tables in PostgreSQL, made and changed by whichever process comes first, while others write."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import AsyncConnection, sql
from psycopg.errors import LockNotAvailable, UndefinedTable

from onetool_team.ledger.postgres_sql import TABLES

OF_PEOPLE = """
CREATE TABLE permissions (principal bytea NOT NULL, tool text NOT NULL, given timestamptz NOT NULL,
    seal bytea NOT NULL, PRIMARY KEY (principal, tool));
CREATE TABLE logins (account text PRIMARY KEY, principal bytea NOT NULL, server text NOT NULL,
    record bytea NOT NULL, changed timestamptz NOT NULL);
CREATE INDEX logins_of_person ON logins (principal);
CREATE TABLE login_locks (account text PRIMARY KEY, principal bytea NOT NULL, holder uuid NOT NULL,
    until timestamptz NOT NULL);
CREATE TABLE pins (principal bytea NOT NULL, server text NOT NULL, revision uuid NOT NULL, book bytea NOT NULL,
    changed timestamptz NOT NULL, PRIMARY KEY (principal, server));
CREATE INDEX pins_changed ON pins (changed);
CREATE TABLE note_ids (principal bytea PRIMARY KEY, last bigint NOT NULL);
CREATE TABLE notes (principal bytea NOT NULL, id bigint NOT NULL, revision uuid NOT NULL, place text NOT NULL,
    chars integer NOT NULL, created timestamptz NOT NULL, updated timestamptz NOT NULL, tags text[] NOT NULL,
    words tsvector NOT NULL, note bytea NOT NULL, PRIMARY KEY (principal, id));
CREATE INDEX notes_latest ON notes (principal, updated DESC, id DESC);
"""
"""What people of a team keep beside the ledger."""
STEPS: Sequence[str] = (TABLES, OF_PEOPLE)
"""What leads from each version to the next. Two releases may be at work at once: only add columns that may be left out,
and remove one a release after nobody uses it any more. No step makes an index on a table that may hold rows: nobody
could write to it meanwhile."""
READABLE_FROM = 1
"""The oldest version whose releases can work with the newest tables."""
LOCK_MILLISECONDS = 200
"""Whoever waits for a table to change it keeps everyone from writing to it, as long as somebody reads on."""
TRIES = 100
MAKING = 7_246_001
"""The number of the lock that one process at a time holds."""


class SchemaTooNew(Exception):
    """The tables are those of a later release, which this one cannot use."""


async def bring_up_to_date(connection: AsyncConnection, schema: str, steps: Sequence[str] = STEPS) -> None:
    """Make or change the tables in *schema* until they are as *steps* say.

    Raises:
        SchemaTooNew: They are newer, and not for this release.
        psycopg.Error: It could not be done.
    """
    for left in reversed(range(TRIES)):
        if await _version(connection, len(steps)) >= len(steps):
            return
        try:
            await _take_steps(connection, schema, steps)
        except LockNotAvailable:
            if not left:
                raise


async def _take_steps(connection: AsyncConnection, schema: str, steps: Sequence[str]) -> None:
    async with connection.transaction():
        await connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(LOCK_MILLISECONDS))
        # Without it, several that come at once fail on each other's tables, whatever IF NOT EXISTS says.
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MAKING,))
        await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS ledger_version (version integer NOT NULL, readable_from integer NOT NULL)"
        )
        row = await (await connection.execute("SELECT version FROM ledger_version")).fetchone()
        if row is None:
            await connection.execute("INSERT INTO ledger_version VALUES (0, 0)")
        for step in steps[row[0] if row else 0 :]:
            for statement in filter(str.strip, step.split(";")):
                await connection.execute(statement.encode())
        await connection.execute(
            "UPDATE ledger_version SET version = %s, readable_from = %s", (len(steps), READABLE_FROM)
        )


async def _version(connection: AsyncConnection, known: int) -> int:
    """Return the version of the tables; 0 where there are none."""
    try:
        found = await connection.execute("SELECT version, readable_from FROM ledger_version")
    except UndefinedTable:
        return 0
    version, readable_from = await found.fetchone() or (0, 0)
    if readable_from > known:
        raise SchemaTooNew(f"its tables are of version {version}, which needs a later release")
    return version
