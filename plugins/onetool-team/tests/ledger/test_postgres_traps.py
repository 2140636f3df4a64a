"""What goes wrong in a PostgreSQL that is used as if it were alone in the world, and does not go wrong here."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from ledger.ledger_beds import background, effect, until
from ledger.postgres_bed import PostgresBed, held, waiting
from onetool_team.ledger import postgres_effects
from onetool_team.ledger.postgres_schema import STEPS, bring_up_to_date
from onetool_team.ledger.postgres_sessions import MOST_SESSIONS
from ot.errors import LedgerUnavailable, RunFenced
from ot.ledger.background_run import RunEnd
from ot.ledger.run_book import LEASE_SECONDS
from pace import PATIENCE, wait_while
from postgres_server import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def bed(postgres: PostgresServer) -> AsyncIterator[PostgresBed]:
    bed = PostgresBed(postgres.address, token_hex(8))
    yield bed
    await bed.aclose()


# ---------------------------------------------------------------- fences


async def test_the_next_start_waits_for_a_call_that_is_being_written_down_and_knows_it(bed: PostgresBed) -> None:
    await bed.ledger.add(background(), 10)
    await bed.ledger.begin("b1")
    await bed.let_the_lease_pass("b1")
    other = bed.process()
    async with held(bed):
        sending = asyncio.ensure_future(bed.ledger.send(effect("b1", start=1)))
        await waiting(bed, "advisory")
        beginning = asyncio.ensure_future(other.begin("b1"))
        await waiting(bed, "Lock", 2)
    assert await sending is None
    assert (start := await beginning)
    assert [1] == [entry.call for entry in start.effects]


async def test_of_many_workers_that_take_at_once_one_has_each_run_and_none_is_left(bed: PostgresBed) -> None:
    people = [f"p{n}" for n in range(6)]
    asked = [background(f"{who}-{n}", who) for n in range(20) for who in people]
    await asyncio.gather(*(bed.ledger.add(run, 1000) for run in asked))
    taken: Counter[str] = Counter()

    async def work() -> None:
        ledger = bed.worker()
        while sum(taken.values()) < len(asked):
            found = await ledger.take_runs(2, 1000)
            taken.update(found)
            for id in found:
                (start,) = [await ledger.begin(id)]
                assert start
                await ledger.end(id, start.number, RunEnd("done", 2e9))

    await asyncio.wait_for(asyncio.gather(*(work() for _ in range(8))), 2 * PATIENCE)
    assert {run.id: 1 for run in asked} == taken


async def test_whoever_floods_the_book_delays_others_by_no_more_than_a_place(bed: PostgresBed) -> None:
    for n in range(50):
        await bed.ledger.add(background(f"flood{n}", "ada", created=bed.now + n), 1000)
    for n in range(3):
        await bed.ledger.add(background(f"bob{n}", "bob", created=bed.now + 100 + n), 1000)
    one, other = bed.worker(), bed.worker()
    assert {"flood0", "bob0"} == set(await one.take_runs(2, 2))
    assert {"flood1", "bob1"} == set(await one.take_runs(2, 2))
    assert [] == await one.take_runs(2, 2), "each has its share of this worker"
    assert {"flood2", "bob2"} == set(await other.take_runs(2, 2))


async def test_a_long_queue_is_taken_in_time_where_postgresql_counted_when_nobody_waited(bed: PostgresBed) -> None:
    worker = bed.worker()
    await bed.ledger.add(background(), 10)
    many = "INSERT INTO runs (id, principal, record, created) SELECT %(name)s || n, principal, record, created "
    many += "FROM runs, generate_series(1, %(count)s) n WHERE id = 'b1'"

    async def take(waiting: int) -> float:
        await bed.sql("UPDATE runs SET state = 'done', ended = now()")
        await bed.sql("VACUUM ANALYZE runs")
        await bed.sql(many, name=f"of{waiting}-", count=waiting)
        took: list[float] = []
        for _ in range(5):
            began = time.perf_counter()
            assert 2 == len(await worker.take_runs(2, 1000))
            took.append(time.perf_counter() - began)
        return statistics.median(took)

    few = await take(20)
    assert await take(2000) < 50 * few


async def test_runs_of_a_dead_worker_are_taken_over_by_one_and_first(bed: PostgresBed) -> None:
    dead, workers = bed.worker(), [bed.worker() for _ in range(8)]
    for n in range(41):
        await bed.ledger.add(background(f"b{n}", created=bed.now + n), 100)
    assert 40 == len(await dead.take_runs(40, 40))
    await dead.aclose()
    assert ["b0"] == await workers[0].take_runs(1, 1), "nobody begins anything new before"
    found = await asyncio.gather(*(worker.take_runs(5, 5) for worker in workers * 8))
    taken = Counter(id for ids in found for id in ids)
    assert {f"b{n}": 1 for n in range(1, 41)} == taken


async def test_a_worker_that_froze_with_a_run_locked_keeps_nobody_from_beginning_it(bed: PostgresBed) -> None:
    await bed.ledger.add(background(), 10)
    frozen = await psycopg.AsyncConnection.connect(bed.conninfo)
    await frozen.execute("SELECT 1 FROM runs FOR UPDATE")  # and not a word more
    assert (start := await asyncio.wait_for(bed.ledger.begin("b1"), PATIENCE))
    assert 1 == start.number
    with pytest.raises((psycopg.OperationalError, psycopg.InternalError)):
        await frozen.execute("SELECT 1")
    await frozen.close()


async def test_a_process_that_was_frozen_after_the_answer_asks_again_before_it_sends(
    bed: PostgresBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bed.ledger.add(background(), 10)
    await bed.ledger.begin("b1")
    ledger, other, clock = bed.worker(), bed.process(), itertools.count(0.0, LEASE_SECONDS)
    answered = ledger._hand_over  # pyright: ignore[reportPrivateUsage] - where it freezes

    async def freeze(sending: Any) -> Any:
        monkeypatch.setattr(ledger, "_hand_over", answered)  # once: how the call ended is handed over, too
        answer = await answered(sending)
        await bed.let_the_lease_pass("b1")
        assert (start := await other.begin("b1"))
        assert 2 == start.number
        return answer

    monkeypatch.setattr(ledger, "_hand_over", freeze)
    monkeypatch.setattr(postgres_effects, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(RunFenced):
        await ledger.send(effect("b1", start=1))


# ---------------------------------------------------------------- cancelled and not replicated


async def test_a_call_that_is_cancelled_on_its_way_into_the_ledger_was_not_sent(bed: PostgresBed) -> None:
    await bed.ledger.send(effect(call=0))
    async with held(bed):
        sending = [asyncio.ensure_future(bed.ledger.send(effect(call=n, amount=n))) for n in range(1, 20)]
        await waiting(bed, "advisory")
        late = [asyncio.ensure_future(bed.ledger.send(effect(call=n, amount=n))) for n in range(20, 40)]
        await asyncio.sleep(0)
        for task in (*sending, *late):
            task.cancel()
        await asyncio.wait((*sending, *late))
    found = await bed.ledger.of_run("ada", "r1")
    assert {"failed"} == {entry.state for entry in found if entry.call}
    assert set(range(1, 20)) <= {entry.call for entry in found}, "it had arrived"


@asynccontextmanager
async def without_standby(postgres: PostgresServer) -> AsyncGenerator[None]:
    """Let every commit in the block wait for a standby that is not there."""
    postgres.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    postgres.run("SELECT pg_reload_conf()")
    wait_while(lambda: postgres.run("SHOW synchronous_standby_names") != "nobody")
    postgres.run("CHECKPOINT")  # whoever makes it reads the settings before, and it is who lets commits wait
    try:
        yield
    finally:
        postgres.run("ALTER SYSTEM RESET synchronous_standby_names")
        postgres.run("SELECT pg_reload_conf()")


async def test_what_no_standby_has_is_not_sent_although_the_commit_is_called_a_success(
    bed: PostgresBed, postgres: PostgresServer
) -> None:
    await bed.ledger.send(effect("r1"))
    async with without_standby(postgres):
        sending = asyncio.ensure_future(bed.ledger.send(effect("r2", amount=2)))
        (pid,) = await waiting(bed, "SyncRep")
        await bed.sql("SELECT pg_cancel_backend(%(pid)s)", pid=pid)
        with pytest.raises(LedgerUnavailable, match="PostgreSQL: canceling wait for synchronous replication"):
            await sending


async def test_nobody_who_is_cancelled_ends_the_wait_for_a_standby(bed: PostgresBed, postgres: PostgresServer) -> None:
    await bed.ledger.send(effect("r1"))
    async with without_standby(postgres):
        sending = asyncio.ensure_future(bed.ledger.send(effect("r2", amount=2)))
        before = await waiting(bed, "SyncRep")
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        adding = asyncio.ensure_future(bed.ledger.add(background(), 10))
        both = await waiting(bed, "SyncRep", 2)
        adding.cancel()
        with suppress(asyncio.CancelledError):
            await adding
        assert set(before) <= set(both) == set(await waiting(bed, "SyncRep", 2))


# ---------------------------------------------------------------- outages


async def test_after_an_outage_nobody_is_taken_for_dead_until_he_had_the_time_to_beat(bed: PostgresBed) -> None:
    healthy, sweeper = bed.worker(), bed.worker(patience=LEASE_SECONDS)
    for n in range(10):
        await bed.ledger.add(background(f"b{n}"), 100)
        await healthy.begin(f"b{n}")
    assert [] == await sweeper.take_runs(10, 10)
    past = f"interval '{LEASE_SECONDS + 1} s'"
    await bed.sql(f"UPDATE writers SET since = since - {past}")
    # Nobody could write for longer than a lease: so it looks to whoever comes back first.
    await bed.sql(f"UPDATE run_beats SET seen = seen - {past}")
    await bed.sql(f"UPDATE writers SET seen = seen - {past}")
    assert [] == await sweeper.list_left_behind()
    assert [] == await sweeper.take_runs(10, 10)
    assert (start := await sweeper.begin("b0"))
    assert start.alive

    async def beats_again() -> bool:
        asked = "SELECT 1 FROM writers WHERE writer = %(me)s AND seen > clock_timestamp() - interval '4 s'"
        return bool(await bed.sql(asked, me=sweeper.writer.id))

    await until(beats_again)
    assert [] == await sweeper.take_runs(10, 10), "it has not been back for long"
    for n in range(9):
        await healthy.beat(f"b{n}", 1)
    await bed.sql(f"UPDATE writers SET since = since - {past} WHERE writer = %(me)s", me=sweeper.writer.id)
    await healthy.writer.begin()

    async def finds_the_silent_one() -> bool:
        return await sweeper.list_left_behind() == ["b9"]

    await until(finds_the_silent_one)


async def test_after_a_restart_every_connection_works_at_once(bed: PostgresBed, postgres: PostgresServer) -> None:
    async def ask(count: int) -> None:
        await asyncio.gather(*(bed.ledger.runs("ada") for _ in range(count)))

    await ask(3 * MOST_SESSIONS)
    await asyncio.to_thread(postgres.stop, "fast")
    await asyncio.to_thread(postgres.start)
    await ask(3 * MOST_SESSIONS)


async def test_one_process_has_few_connections_however_many_ask(bed: PostgresBed) -> None:
    await asyncio.gather(*(bed.ledger.status("ada", "b1") for _ in range(300)))
    ((count,),) = await bed.sql(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE %(like)s AND pid <> pg_backend_pid()", like="%runs%"
    )
    assert 1 <= count <= MOST_SESSIONS


# ---------------------------------------------------------------- settings of others


async def test_what_the_role_says_does_not_weaken_the_ledger(bed: PostgresBed, postgres: PostgresServer) -> None:
    for setting in ("synchronous_commit = off", "TimeZone = 'Pacific/Auckland'"):
        postgres.run(f"ALTER ROLE admin SET {setting}")
    try:
        ledger = bed.worker()
        await ledger.send(effect())
        assert [[("on",)]] == await ledger.sessions.take(("SHOW synchronous_commit", {}))
        assert [bed.now] == [pytest.approx(entry.at) for entry in await ledger.of_run("ada", "r1")]
        assert {"kind": "postgres", "status": "ok"} == await ledger.health()
    finally:
        postgres.run("ALTER ROLE admin RESET ALL")


# ---------------------------------------------------------------- tables


async def test_of_many_that_make_the_tables_at_once_none_fails(postgres: PostgresServer) -> None:
    beds = [PostgresBed(postgres.address, f"together{n // 8}") for n in range(24)]
    assert [[]] * 24 == await asyncio.gather(*(bed.ledger.runs("ada") for bed in beds))
    for bed in beds:
        await bed.aclose()


async def test_a_change_of_the_tables_keeps_nobody_from_writing_and_older_ones_go_on(bed: PostgresBed) -> None:
    await bed.ledger.send(effect(call=0))
    async with (
        await psycopg.AsyncConnection.connect(bed.url) as reader,
        await psycopg.AsyncConnection.connect(bed.conninfo, autocommit=True) as newer,
    ):
        await reader.execute(f'SELECT count(*) FROM "{bed.schema}".effects'.encode())
        steps = [*STEPS, "ALTER TABLE effects ADD COLUMN later text"]
        changing = asyncio.ensure_future(bring_up_to_date(newer, bed.schema, steps))
        await waiting(bed, "relation")
        for call in range(1, 20):
            await bed.ledger.send(effect(call=call, amount=call))
        assert not changing.done()
        await reader.rollback()
        await asyncio.wait_for(changing, PATIENCE)
    await bed.ledger.send(effect(call=20, amount=20))
    assert 21 == len(await bed.ledger.of_run("ada", "r1"))
    assert 21 == len(await bed.process().of_run("ada", "r1"))


async def test_tables_that_only_a_later_release_understands_are_left_alone(bed: PostgresBed) -> None:
    await bed.ledger.runs("ada")
    await bed.sql("UPDATE ledger_version SET version = 9, readable_from = 9")
    with pytest.raises(LedgerUnavailable, match="version 9, which needs a later release"):
        await bed.process().runs("ada")
