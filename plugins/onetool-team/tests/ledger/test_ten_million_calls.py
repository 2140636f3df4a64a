"""With ten million calls of 5,000 people in the ledger, what one of them asks for is as quick as with few."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from secrets import token_hex

import psycopg
import pytest

from ledger.ledger_beds import ADA, background, effect
from ledger.postgres_bed import PostgresBed
from onetool_team.ledger.postgres_run_records import PostgresRunRecords
from ot.ledger.background_run import RunEnd
from postgres_server import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.soak, pytest.mark.timeout(3600)]

LOTS, OF_LOT, PEOPLE, OF_RUN = 200, 50_000, 5_000, 20
FILL = f"""
INSERT INTO effects
SELECT 'r' || n / {OF_RUN}, 0, mod(n, {OF_RUN}), sha256((mod(n / {OF_RUN}, {PEOPLE}))::text::bytea), tool, line,
  sha256(n::text::bytea), writer, ticket, 'done', sent - n * interval '0.2 s', sent - n * interval '0.2 s'
FROM (SELECT * FROM effects LIMIT 1) one, generate_series(%(first)s::bigint, %(last)s::bigint) n
"""
OF_ADA = f"""
INSERT INTO effects
SELECT 'ada' || n / {OF_RUN}, 0, mod(n, {OF_RUN}), principal, tool, line, sha256(n::text::bytea), writer,
  ticket, 'done', sent - n * interval '0.2 s', sent
FROM (SELECT * FROM effects LIMIT 1) one, generate_series(0, {LOTS * OF_LOT // PEOPLE} - 1) n
"""
GOAL_SECONDS = 0.1


@pytest.fixture
async def bed(postgres: PostgresServer) -> AsyncIterator[PostgresBed]:
    bed = PostgresBed(postgres.address, token_hex(8), seconds=60)
    yield bed
    await bed.aclose()


async def test_a_persons_history_a_runs_calls_and_forgetting_a_person_are_quick(
    bed: PostgresBed, record_property: Callable[[str, object], None]
) -> None:
    ledger = bed.worker()
    await ledger.send(effect("first"))
    ledger.record_end(effect("first"), "done")
    for n in range(200):
        await ledger.add(background(f"b{n}", created=bed.now + n), 1000)
        assert await ledger.begin(f"b{n}")
        await ledger.end(f"b{n}", 1, RunEnd("done", bed.now))
    async with await psycopg.AsyncConnection.connect(bed.conninfo, autocommit=True) as filling:
        await filling.execute("SET synchronous_commit = off")
        await filling.execute(OF_ADA.encode())
        for lot in range(LOTS):
            await filling.execute(FILL.encode(), {"first": lot * OF_LOT, "last": (lot + 1) * OF_LOT - 1})
        await filling.execute("VACUUM ANALYZE effects")
        size = await filling.execute("SELECT count(*), pg_total_relation_size('effects') / count(*) FROM effects")
        record_property("calls and bytes of each", str(await size.fetchone()))
    records = PostgresRunRecords(ledger)
    took: dict[str, float] = {}

    async def measure[T](name: str, work: Awaitable[T]) -> T:
        began = time.perf_counter()
        found = await work
        took[name] = round(time.perf_counter() - began, 4)
        return found

    assert OF_RUN == len(await measure("a run's calls", ledger.of_run(ADA.principal, "ada0")))
    assert [] == await measure("unknown calls", ledger.unknown(ADA.principal))
    assert 100 == len(await measure("a history", ledger.runs(ADA.principal)))
    assert await measure("a call", ledger.send(effect("last"))) is None
    await measure("forgetting a person", records.forget(ADA.principal))
    assert {"runs": 0, "calls": 0} == await records.count(ADA.principal)
    record_property("seconds", str(took))
    assert max(took.values()) < GOAL_SECONDS, took
