"""The ledger in Redis: what lies there tells little, expires, and is not believed when somebody else wrote it."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex

import pytest

from ledger.ledger_beds import ADA, RedisBed, background, effect, until
from ot.errors import LedgerUnavailable
from ot.ledger.background_run import RunEnd
from ot.ledger.redis_scripts import ALIVE_SECONDS
from ot.ledger.run_book import Beat
from ot.state.state_keys import StateKeys
from state.redis_process import RedisProcess, running_redis

pytestmark = pytest.mark.anyio

OLD, NEW = "the old key, of at least 32 characters", "the new key, of at least 32 characters"
DAY = 86_400
ASKED = {"number": 7, "message": "Pay the canary?"}


@pytest.fixture
async def bed(redis: RedisProcess) -> AsyncIterator[RedisBed]:
    bed = RedisBed(redis.url, token_hex(8))
    yield bed
    await bed.aclose()


async def everything(bed: RedisBed) -> dict[str, bytes]:
    """Return what lies in Redis, by key."""
    keys = [key.decode() async for key in bed.client.scan_iter(bed.key("*"))]
    return {key: await bed.client.dump(key) for key in keys}


async def run_a_whole_life(bed: RedisBed) -> None:
    """Write one of everything."""
    ledger = bed.ledger
    await ledger.add(background("b1", principal="canary"), 10)
    await ledger.begin("b1")
    await ledger.ask("b1", 1, ASKED)
    await ledger.answer("canary", "b1", 7, {"text": "canary"})
    await ledger.beat("b1", 1)
    await ledger.send(effect("b1", start=1, token="canary"))
    ledger.record_end(effect("b1", start=1, token="canary"), "done", {"found": "canary"})
    await ledger.of_run("ada", "b1")


async def test_nothing_that_anybody_said_can_be_read_in_redis(bed: RedisBed) -> None:
    await run_a_whole_life(bed)
    found = await everything(bed)
    assert len(found) >= 6
    assert not [key for key, value in found.items() if b"canary" in value or "canary" in key]
    await bed.ledger.end("b1", 1, RunEnd("done", 1.0, ("canary",)))
    assert not [key for key, value in (await everything(bed)).items() if b"canary" in value]


async def test_what_has_ended_expires_and_an_open_run_does_not(bed: RedisBed) -> None:
    await bed.ledger.send(effect())
    await run_a_whole_life(bed)
    assert 29 * DAY < await bed.client.ttl(bed.key("effects", "r1")) <= 30 * DAY
    assert -1 == await bed.client.ttl(bed.key("run", "b1"))
    assert -1 == await bed.client.ttl(bed.key("effects", "b1")), "the next start has to know what it did"
    await bed.ledger.end("b1", 1, RunEnd("done", 1.0))
    for kind in ("run", "effects"):
        assert 29 * DAY < await bed.client.ttl(bed.key(kind, "b1")) <= 30 * DAY


async def test_a_run_that_is_gone_is_not_told_any_more(bed: RedisBed) -> None:
    for id in ("b1", "b2"):
        await bed.ledger.add(background(id), 10)
    await bed.client.delete(bed.key("run", "b1"))
    assert ["b2"] == [status.run.id for status in await bed.ledger.runs("ada")]
    assert ["b2"] == await bed.ledger.list_left_behind()


async def test_what_a_later_release_has_added_to_an_entry_is_ignored(bed: RedisBed) -> None:
    await bed.ledger.send(effect())
    key = bed.key("effects", "r1")
    await bed.client.hset(key, "0:1", (await bed.client.hget(key, "0:1")).replace(b'{"', b'{"later":1,"'))
    assert ["bank.pay"] == [entry.tool for entry in await bed.ledger.of_run("ada", "r1")]


async def test_a_forged_or_moved_run_is_not_carried_out(bed: RedisBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.add(background("b2"), 10)
    moved = await bed.client.hget(bed.key("run", "b1"), "run")
    await bed.client.hset(bed.key("run", "b2"), "run", moved)
    assert await bed.ledger.begin("b2") is None
    assert await bed.ledger.status("ada", "b2") is None
    await bed.client.hset(bed.key("run", "b1"), "run", b'{"id": "b1", "principal": "ada", "command": "evil()"}')
    assert await bed.ledger.begin("b1") is None


async def test_a_run_whose_owner_was_changed_is_nobodys(bed: RedisBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.add(background("other", principal="bob"), 10)
    await bed.client.hset(bed.key("run", "b1"), "who", await bed.client.hget(bed.key("run", "other"), "who"))
    assert await bed.ledger.status("bob", "b1") is None
    assert await bed.ledger.status("ada", "b1") is None


async def test_a_forged_end_ends_a_run_and_says_nothing(bed: RedisBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.client.hset(bed.key("run", "b1"), "ending", b"forged")
    assert (start := await bed.ledger.begin("b1"))
    assert start.end
    assert ("stopped", ()) == (start.end.state, start.end.texts)


async def test_an_answer_counts_for_the_question_that_it_was_given_to(bed: RedisBed) -> None:
    key = bed.key("run", "b1")
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.begin("b1")
    await bed.ledger.ask("b1", 1, ASKED)
    await bed.ledger.answer("ada", "b1", 7, {"action": "accept"})
    earlier = await bed.client.hget(key, "answer")
    await bed.ledger.ask("b1", 1, {**ASKED, "number": 8})
    await bed.client.hset(key, mapping={"answer": earlier, "number": 7})
    assert await bed.ledger.beat("b1", 1) == Beat()


async def test_forged_packs_are_not_those_of_the_first_start(bed: RedisBed) -> None:
    await bed.ledger.add(background("b1"), 10)
    await bed.ledger.begin("b1")
    await bed.client.hset(bed.key("run", "b1"), "packs", b"forged")
    assert {"bank": "v2"} != await bed.redis_ledger().use_packs("b1", 1, {"bank": "v2"})


async def test_the_same_call_is_noticed_after_the_keys_were_changed(bed: RedisBed) -> None:
    before, after = bed.redis_ledger(StateKeys([OLD])), bed.redis_ledger(StateKeys([NEW, OLD]))
    await before.add(background("b1"), 10)
    await before.send(effect())
    before.record_end(effect(), "unknown")
    await before.of_run("ada", "r1")
    assert (found := await after.send(effect("r2")))
    assert "r1" == found.run_id
    assert (start := await after.begin("b1"))
    assert 1 == start.number
    stranger = bed.redis_ledger(StateKeys([NEW]))
    assert await stranger.status("ada", "b1") is None
    assert await stranger.send(effect("r3")) is None, "without the old key nobody can tell what the call was"


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "replicas.md"
ACL = re.findall(r"^ACL SETUSER (onetool .*)$", PAGE.read_text(), re.MULTILINE)


async def test_the_user_of_redis_that_the_page_names_is_enough() -> None:
    with running_redis("--user", *ACL[0].split(), tcp=True) as redis:
        bed = RedisBed(redis.url.replace("//", "//onetool:PASSWORD@"))
        await run_a_whole_life(bed)
        await bed.ledger.cancel("canary", "b1")
        assert [] == await bed.ledger.list_left_behind()
        assert 1 == len(await bed.ledger.runs("canary"))
        assert [] == await bed.ledger.unknown(ADA.principal)
        waiting = bed.redis_ledger()
        waiting.place._replicas = 1  # pyright: ignore[reportPrivateUsage] - WAIT is allowed, and nobody answers it
        with pytest.raises(LedgerUnavailable, match="0 of 1 replica"):
            await waiting.send(effect("r9"))
        await waiting.aclose()
        await bed.aclose()


KILLED = """
import asyncio, sys
sys.path.insert(0, {tests!r})
from ledger.ledger_beds import RedisBed, effect
async def main():
    ledger = RedisBed({url!r}, {prefix!r}).ledger
    await ledger.send(effect())
    print("sent", flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


async def test_what_a_killed_replica_had_sent_is_unknown_within_seconds(redis: RedisProcess) -> None:
    prefix = token_hex(8)
    bed = RedisBed(redis.url, prefix)
    code = KILLED.format(tests=str(Path(__file__).parent.parent), url=redis.url, prefix=prefix)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - it only waits to be killed
        assert process.stdout
        assert b"sent\n" == process.stdout.readline()
        (writer,) = [key async for key in bed.client.scan_iter(bed.key("writer:*"))]
        assert ["sent"] == [entry.state for entry in await bed.ledger.of_run("ada", "r1")]
        # It beats: each beat gives it its whole time again.
        seen = [await bed.client.pttl(writer)]

        async def has_beaten() -> bool:
            seen.append(await bed.client.pttl(writer))
            return seen[-1] > seen[-2]

        await until(has_beaten)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    assert 0 < await bed.client.pttl(writer) <= 1000 * ALIVE_SECONDS

    async def is_unknown() -> bool:
        return (await bed.ledger.of_run("ada", "r1"))[0].state == "unknown"

    await until(is_unknown)
    assert (found := await bed.ledger.send(effect("r3")))
    assert "r1" == found.run_id
    await bed.aclose()


MALFORMED = (b"", b"x", b"1|w", b"1|w|{", b"1|w|[]", b"1|w|{}", b'1|w|{"who": 1}', b"\xff|\xff|\xff")


async def test_a_malformed_entry_is_skipped_and_the_others_are_told(
    bed: RedisBed, caplog: pytest.LogCaptureFixture
) -> None:
    await bed.ledger.send(effect())
    key = bed.key("effects", "r1")
    (whole,) = [value for field, value in (await bed.client.hgetall(key)).items() if not field.endswith(b":end")]
    forged = [
        *MALFORMED,
        whole.replace(b'"at":', b'"at":"soon","was":'),
        whole.replace(b'"call":', b'"call":[],"was":'),
    ]
    for number, value in enumerate(forged):
        await bed.client.hset(key, f"forged{number}", value)
    await bed.client.hset(key, b"good:end", b"done|later|sealed")
    await bed.client.hset(key, b"good", whole)
    assert [entry.call for entry in await bed.ledger.of_run("ada", "r1")] == [effect().call_id]
    # One of them is somebody else's; in place of it, the good one has a malformed end.
    assert caplog.text.count("is malformed and skipped") == len(forged)


async def test_who_reads_redis_cannot_try_out_who_somebody_is(bed: RedisBed) -> None:
    await run_a_whole_life(bed)
    tried = hashlib.sha256(b"canary").hexdigest()[:32]
    assert not [key for key, value in (await everything(bed)).items() if tried in key or tried.encode() in value]


def test_a_new_key_in_front_of_the_old_one_changes_no_name() -> None:
    assert StateKeys([NEW, OLD]).hide("ada") == StateKeys([OLD]).hide("ada") != StateKeys([NEW]).hide("ada")
