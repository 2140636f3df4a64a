"""The ledger in PostgreSQL: what lies there tells little, is kept so long, and is not believed when it was forged."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from secrets import token_hex

import pytest

from checkout import TESTS
from ledger.ledger_beds import BOB, background, effect, until
from ledger.postgres_bed import PostgresBed
from onetool_team.ledger import postgres_effects, postgres_writer
from onetool_team.ledger.postgres_effects import TOGETHER
from onetool_team.ledger.postgres_ledger import PostgresLedger
from onetool_team.ledger.postgres_sessions import Rows, Step
from onetool_team.state.state_keys import StateKeys
from ot.ledger.background_run import RunEnd
from ot.ledger.run_book import Beat
from pace import PATIENCE
from postgres_server import PostgresServer

pytestmark = pytest.mark.anyio

OLD, NEW = "the old key, of at least 32 characters", "the new key, of at least 32 characters"
ASKED = {"number": 7, "message": "Pay the canary?"}


@pytest.fixture
async def bed(postgres: PostgresServer) -> AsyncIterator[PostgresBed]:
    bed = PostgresBed(postgres.address, token_hex(8))
    yield bed
    await bed.aclose()


async def everything(bed: PostgresBed) -> str:
    """Return all rows of all tables, with what is binary as PostgreSQL writes it and as text."""
    tables = ("effects", "runs", "run_beats", "writers", "ledger_version")
    rows = [await bed.sql(f"SELECT * FROM {table}") for table in tables]
    return "\n".join(str(row) for found in rows for row in found)


async def run_a_whole_life(bed: PostgresBed) -> None:
    """Write one of everything."""
    ledger = bed.ledger
    await ledger.add(background("b1", principal="canary"), 10)
    await ledger.begin("b1")
    await ledger.use_packs("b1", 1, {"canary": "canary"})
    await ledger.ask("b1", 1, ASKED)
    await ledger.answer("canary", "b1", 7, {"text": "canary"})
    await ledger.beat("b1", 1)
    await ledger.send(effect("b1", start=1, token="canary"))
    ledger.record_end(effect("b1", start=1, token="canary"), "done", {"found": "canary"})
    await ledger.of_run("ada", "b1")


async def test_nothing_that_anybody_said_can_be_read_in_the_database(bed: PostgresBed) -> None:
    await run_a_whole_life(bed)
    assert "bank.pay" in (found := await everything(bed)), "what an operator asks for is in the clear"
    assert "canary" not in found
    await bed.ledger.end("b1", 1, RunEnd("done", 1.0, ("canary",)))
    assert "canary" not in await everything(bed)


async def test_what_is_sealed_was_made_small_before(bed: PostgresBed) -> None:
    await bed.ledger.send(effect("b1"))
    bed.ledger.record_end(effect("b1"), "done", {"rows": [{"name": "ada", "paid": True}] * 500})
    assert 500 == len((await bed.ledger.of_run("ada", "b1"))[0].value["rows"])
    ((size,),) = await bed.sql("SELECT length(value) FROM effects")
    assert size < 1000


async def test_what_has_ended_is_kept_so_long_and_what_has_not_as_long_as_it_takes(bed: PostgresBed) -> None:
    await run_a_whole_life(bed)
    for call in range(5):
        await bed.ledger.send(effect(call=call, amount=call))
    await bed.ledger.of_run("ada", "r1")
    writer, now = bed.worker().writer, datetime.now(UTC)
    await writer.clean(now + timedelta(days=29))
    assert 5 == len(await bed.ledger.of_run("ada", "r1"))
    await writer.clean(now + timedelta(days=31))
    assert [] == await bed.ledger.of_run("ada", "r1")
    assert 1 == len(await bed.ledger.of_run("ada", "b1")), "the next start has to know what it did"
    await bed.ledger.end("b1", 1, RunEnd("done", 1.0))
    await writer.clean(now + timedelta(days=31))
    assert [] == await bed.ledger.of_run("ada", "b1")
    await writer.clean(now + timedelta(days=31))
    assert [] == await bed.ledger.runs("canary")


async def test_a_forged_or_moved_run_is_not_carried_out(bed: PostgresBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.add(background("b2"), 10)
    await bed.sql("UPDATE runs SET record = (SELECT record FROM runs WHERE id = 'b1') WHERE id = 'b2'")
    assert await bed.ledger.begin("b2") is None
    assert await bed.ledger.status("ada", "b2") is None
    await bed.sql('UPDATE runs SET record = \'{"id": "b1", "command": "evil()"}\'')
    assert await bed.ledger.begin("b1") is None


async def test_a_run_whose_owner_was_changed_is_nobodys(bed: PostgresBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.add(background("other", principal="bob"), 10)
    await bed.sql("UPDATE runs SET principal = (SELECT principal FROM runs WHERE id = 'other') WHERE id = 'b1'")
    assert await bed.ledger.status("bob", "b1") is None
    assert await bed.ledger.status("ada", "b1") is None
    assert ["other"] == [status.run.id for status in await bed.ledger.runs("bob")]


async def test_a_forged_end_ends_a_run_and_says_nothing(bed: PostgresBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.sql("UPDATE runs SET ending = 'forged', ended = clock_timestamp()")
    assert (start := await bed.ledger.begin("b1"))
    assert start.end
    assert ("stopped", ()) == (start.end.state, start.end.texts)


async def test_an_answer_counts_for_the_question_that_it_was_given_to(bed: PostgresBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.begin("b1")
    await bed.ledger.ask("b1", 1, ASKED)
    await bed.ledger.answer("ada", "b1", 7, {"action": "accept"})
    ((earlier,),) = await bed.sql("SELECT answer FROM runs")
    await bed.ledger.ask("b1", 1, {**ASKED, "number": 8})
    await bed.sql("UPDATE runs SET answer = %(answer)s, number = 7", answer=earlier)
    assert await bed.ledger.beat("b1", 1) == Beat()


async def test_forged_packs_are_not_those_of_the_first_start(bed: PostgresBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.begin("b1")
    await bed.sql("UPDATE runs SET packs = 'forged'")
    assert {"bank": "v2"} != await bed.worker().use_packs("b1", 1, {"bank": "v2"})


async def test_the_same_call_is_noticed_after_the_keys_were_changed(bed: PostgresBed) -> None:
    before, after = bed.worker(keys=StateKeys([OLD])), bed.worker(keys=StateKeys([NEW, OLD]))
    await before.add(background("b1"), 10)
    await before.send(effect())
    before.record_end(effect(), "unknown")
    await before.of_run("ada", "r1")
    assert (found := await after.send(effect("r2")))
    assert "r1" == found.run_id
    assert (start := await after.begin("b1"))
    assert 1 == start.number
    stranger = bed.worker(keys=StateKeys([NEW]))
    assert await stranger.status("ada", "b1") is None
    assert await stranger.send(effect("r3")) is None, "without the old key nobody can tell what the call was"


async def test_a_malformed_entry_is_skipped_and_the_others_are_told(
    bed: PostgresBed, caplog: pytest.LogCaptureFixture
) -> None:
    for call in range(5):
        await bed.ledger.send(effect("b1", call, amount=call))
        bed.ledger.record_end(effect("b1", call, amount=call), "done", call)
    await bed.ledger.of_run("ada", "b1")
    forged = bed.ledger
    place = bed.worker().place
    for call, value in ((1, {"malformed": 1}), (2, "{")):
        sealed = place.seal(f"effects/b1/0/{call}/value", value)
        await bed.sql("UPDATE effects SET value = %(value)s WHERE call = %(call)s", value=sealed, call=call)
    await bed.sql("UPDATE effects SET value = 'forged' WHERE call = 3")
    await bed.sql("UPDATE effects SET value = (SELECT value FROM effects WHERE call = 0) WHERE call = 4")
    found = {entry.call: entry.value for entry in await forged.of_run("ada", "b1")}
    assert {0: 0, 3: None, 4: None} == found
    assert 2 == caplog.text.count("is malformed and skipped")


async def test_a_call_that_cannot_be_written_down_as_it_is_keeps_no_other_from_it(bed: PostgresBed) -> None:
    names = ("with\0nothing", "r" * 3000, "\ud800")
    for name in names:
        assert await bed.ledger.send(effect(name, amount=len(name))) is None
        assert ["sent"] == [entry.state for entry in await bed.ledger.of_run("ada", name)]


def watch_transactions(ledger: PostgresLedger, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list of how many statements each transaction of *ledger* has, which grows."""
    sizes: list[int] = []
    take = ledger.sessions.take

    async def watch(*steps: Step) -> list[Rows]:
        sizes.append(len(steps))
        return await take(*steps)

    monkeypatch.setattr(ledger.sessions, "take", watch)
    monkeypatch.setattr(postgres_writer, "BEAT_SECONDS", PATIENCE)
    return sizes


async def test_no_call_waits_for_the_ends_of_others_which_are_written_together_but_for_an_unknown_one(
    bed: PostgresBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_effects, "SOON_SECONDS", PATIENCE)
    sizes = watch_transactions(ledger := bed.worker(), monkeypatch)
    await ledger.send(effect(call=0))
    sizes.clear()
    for call in range(1, 6):
        ledger.record_end(effect(call=call - 1), "done")
        await ledger.send(effect(call=call, amount=call))
    await ledger.settle()
    assert [1] * 5 + [5] == sizes
    ledger.record_end(effect(call=5), "unknown")
    await ledger.send(effect(call=6, amount=6))
    assert 2 == sizes[-1], "the next call may be the same"


async def test_an_end_that_no_call_follows_is_written_soon(bed: PostgresBed) -> None:
    await bed.ledger.send(effect())
    bed.ledger.record_end(effect(), "done")

    async def is_written() -> bool:
        return await bed.sql("SELECT state FROM effects") == [("done",)]

    await until(is_written)


async def test_however_many_calls_wait_they_are_written_in_transactions_of_a_bounded_size(
    bed: PostgresBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = watch_transactions(ledger := bed.worker(), monkeypatch)
    await ledger.send(effect(call=0))
    sizes.clear()
    calls = range(1, 3 * TOGETHER)
    found = await asyncio.gather(*(ledger.send(effect(call=call, amount=call)) for call in calls))
    assert [None] * len(calls) == found
    assert len(calls) == sum(sizes)
    assert max(sizes) <= TOGETHER


async def test_whoever_reads_waits_for_all_ends_however_many_they_are(
    bed: PostgresBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_effects, "TOGETHER", 1)
    await asyncio.gather(*(bed.ledger.send(effect(call=call, amount=call)) for call in range(TOGETHER)))
    for call in range(TOGETHER):
        bed.ledger.record_end(effect(call=call, amount=call), "done")
    assert {"done"} == {entry.state for entry in await bed.ledger.of_run("ada", "r1")}


async def test_no_call_and_no_end_reads_the_whole_table(bed: PostgresBed) -> None:
    ledger = bed.worker()
    await ledger.send(effect(call=0))
    await bed.sql(f"""INSERT INTO effects
        SELECT 'other' || n, 0, 1, principal, tool, line, sha256(n::text::bytea), writer, ticket, 'done', sent
        FROM effects, generate_series(1, {20 * TOGETHER}) n""")
    await bed.sql("ANALYZE effects")
    asked = "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = 'effects' AND schemaname = %(schema)s"
    for call in range(1, TOGETHER):
        await ledger.send(effect(call=call, amount=call))
        ledger.record_end(effect(call=call, amount=call), "done")
    await ledger.aclose()  # a process of PostgreSQL tells what it did when it ends

    async def is_told() -> bool:
        return (await bed.sql(asked, schema=bed.schema))[0][1] >= 2 * TOGETHER

    await until(is_told)
    ((scans, _),) = await bed.sql(asked, schema=bed.schema)
    assert scans < TOGETHER / 4, "those of this test"


async def test_whoever_makes_too_many_calls_loses_his_oldest_and_nobody_else_any(
    bed: PostgresBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writer, "LOT", 10)
    monkeypatch.setattr(postgres_writer, "MOST_OF_ONE", 20)
    for call in range(5):
        await bed.ledger.send(effect("bobs", call, BOB, amount=call))
    for call in range(50):
        bed.now += 1
        await bed.ledger.send(effect(call=call, amount=call))
        bed.ledger.record_end(effect(call=call, amount=call), "done")
        await bed.ledger.settle()  # a call that has not ended is kept

    async def are_few() -> bool:
        return len(await bed.ledger.of_run("ada", "r1")) <= 20 + 1

    await until(are_few)
    left = [entry.call for entry in await bed.ledger.of_run("ada", "r1")]
    assert list(range(50 - len(left), 50)) == left
    assert 5 == len(await bed.ledger.of_run("bob", "bobs"))


KILLED = """
import asyncio, sys
sys.path[:0] = {tests!r}
from ledger.ledger_beds import effect
from ledger.postgres_bed import PostgresBed
async def main():
    ledger = PostgresBed({url!r}, {schema!r}).ledger
    await ledger.send(effect())
    print("sent", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_what_a_killed_replica_had_sent_is_unknown_within_seconds(bed: PostgresBed) -> None:
    code = KILLED.format(tests=[str(folder) for folder in TESTS], url=bed.url, schema=bed.schema)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - it only waits to be killed
        assert process.stdout
        assert b"sent\n" == process.stdout.readline()
        assert ["sent"] == [entry.state for entry in await bed.ledger.of_run("ada", "r1")]
        (first,) = await bed.sql("SELECT seen FROM writers")

        async def has_beaten() -> bool:
            return await bed.sql("SELECT seen FROM writers") != [first]

        await until(has_beaten)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)

    async def is_unknown() -> bool:
        return (await bed.ledger.of_run("ada", "r1"))[0].state == "unknown"

    await until(is_unknown)
    assert (found := await bed.ledger.send(effect("r3")))
    assert "r1" == found.run_id
