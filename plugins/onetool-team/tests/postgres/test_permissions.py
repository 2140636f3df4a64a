"""What each person of a team has allowed for good, in its PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from onetool_team.own_permissions import OwnPermissions
from onetool_team.postgres.permissions import PostgresPermissions
from onetool_team.state.always_allowed import MOST_PATTERNS
from onetool_team.state.shared_state import StateUnavailable
from onetool_team.state.state_keys import StateKeys
from postgres.rows_bed import RowsBed
from postgres_server import PostgresServer

pytestmark = pytest.mark.anyio


async def read(bed: RowsBed, principal: str) -> tuple[str, ...]:
    """Return what a process that knows nothing yet reads."""
    return await PostgresPermissions(bed.process()).patterns(principal)


async def test_what_is_said_in_one_process_holds_in_the_other(bed: RowsBed) -> None:
    one, other = PostgresPermissions(bed.process()), PostgresPermissions(bed.process())
    await asyncio.gather(one.add("ann", "mail.send"), other.add("ann", "file.write"), one.add("ann", "mail.send"))
    assert sorted(await read(bed, "ann")) == ["file.write", "mail.send"]
    assert await read(bed, "bob") == ()
    assert await other.forget("ann", "mail") == ("mail.send",)
    assert await read(bed, "ann") == ("file.write",)
    assert await one.forget("ann") == ("file.write",)
    assert await one.patterns("ann") == ()


async def test_an_operator_reads_who_allowed_which_tool_and_when(bed: RowsBed) -> None:
    rows = bed.process()
    await PostgresPermissions(rows).add("ann", "mail.send")
    asked = "SELECT tool FROM permissions WHERE principal = %(who)s AND given > clock_timestamp() - interval '1 hour'"
    assert await bed.sql(asked, who=rows.who("ann")) == [("mail.send",)]
    assert b"ann" not in await bed.dump()


async def test_a_row_that_somebody_without_the_keys_wrote_allows_nothing(bed: RowsBed) -> None:
    rows, forged = bed.process(), bed.process(StateKeys.ephemeral())
    await PostgresPermissions(rows).add("ann", "file.read")
    await bed.sql("UPDATE permissions SET tool = 'file.write'")
    await PostgresPermissions(forged).add("ann", "mail.send")
    await bed.sql("UPDATE permissions SET principal = %(who)s WHERE tool = 'mail.send'", who=rows.who("ann"))
    assert await read(bed, "ann") == ()


async def test_what_one_person_allowed_cannot_be_moved_to_another(bed: RowsBed) -> None:
    rows = bed.process()
    await PostgresPermissions(rows).add("ann", "mail.send")
    await bed.sql("UPDATE permissions SET principal = %(who)s", who=rows.who("bob"))
    assert await read(bed, "bob") == ()


async def test_nobody_allows_without_end(bed: RowsBed) -> None:
    rows = bed.process()
    book = PostgresPermissions(rows)
    many = "INSERT INTO permissions SELECT %(who)s, 'x.t' || n, now(), '' FROM generate_series(2, %(most)s) n"
    await bed.sql(many, who=rows.who("ann"), most=MOST_PATTERNS)
    await book.add("ann", "mail.send")
    await book.add("ann", "mail.send")
    with pytest.raises(StateUnavailable, match="always allowed already"):
        await book.add("ann", "mail.read")
    await book.add("bob", "mail.read")


async def test_while_postgres_is_away_a_person_is_asked(bed: RowsBed, postgres: PostgresServer) -> None:
    rows = bed.process()
    own = OwnPermissions(PostgresPermissions(rows), "ann")
    await own.allow("mail.send")
    rows.sessions.seconds = 0.5
    postgres.freeze()
    try:
        assert not await own.allows("mail.send")
    finally:
        postgres.thaw()
