"""Runs and sessions that one replica holds, asked about at another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pace import PATIENCE
from proxied.desk import until
from state.redis_process import RedisProcess, running_redis
from state.replicas import Replica, replica, text_of, token_of, two_replicas

pytestmark = pytest.mark.anyio

DELETE = "hub.delete(item=7)"
TWICE = "[hub.delete(item=1), hub.purge(item=2)]"
NOT_WAITING = "no run waits for this answer: it was answered already, or given up. Run the program again"


@pytest.fixture(scope="module")
def redis() -> Generator[RedisProcess]:
    with running_redis() as process:
        yield process


@pytest.fixture
async def replicas(tmp_path: Path, redis: RedisProcess) -> AsyncGenerator[tuple[Replica, Replica]]:
    async with two_replicas(tmp_path, redis.url) as both, asyncio.timeout(PATIENCE):
        yield both


async def test_a_question_of_one_replica_is_answered_at_the_other(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    async with one.person() as here, other.person() as there:
        token = await here.asked(DELETE)
        assert one.hub.deleted == []
        assert text_of(await there.answer(token, DELETE)) == "7"
    assert (one.hub.deleted, other.hub.deleted) == ([7], [])


async def test_a_question_at_its_own_replica_goes_nowhere_else(replicas: tuple[Replica, Replica]) -> None:
    one, _ = replicas
    async with one.person() as here:
        assert text_of(await here.answer(await here.asked(DELETE), DELETE)) == "7"


async def test_an_answer_is_taken_once(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    async with one.person() as here, other.person() as there:
        token = await here.asked(DELETE)
        both = await asyncio.gather(there.answer(token, DELETE), here.answer(token, DELETE))
        assert sorted(text_of(found) for found in both) == ["7", NOT_WAITING]
        assert text_of(await there.answer(token, DELETE)) == NOT_WAITING
    assert one.hub.deleted == [7]


async def test_nobody_answers_for_another_principal(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    async with AsyncExitStack() as stack:
        ann = await stack.enter_async_context(one.person("ann"))
        token = await ann.asked(DELETE)
        for replica in replicas:
            bob = await stack.enter_async_context(replica.person("bob"))
            assert text_of(await bob.answer(token, DELETE)) == NOT_WAITING
        assert one.hub.deleted == []
        ann_there = await stack.enter_async_context(other.person("ann"))
        assert text_of(await ann_there.answer(token, DELETE)) == "7"


async def test_a_run_that_asks_again_may_be_answered_at_yet_another(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    async with one.person() as here, other.person() as there:
        first = await here.asked(TWICE)
        second = token_of(await there.answer(first, TWICE))
        assert one.hub.deleted == [1]
        assert text_of(await there.answer(first, TWICE)) == NOT_WAITING
        assert text_of(await here.answer(second, TWICE)) == "[1,-2]"
    assert one.hub.deleted == [1, -2]


async def test_a_session_is_where_its_variables_are(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    async with one.person() as here, other.person() as there, other.person("bob") as bob:
        await here.text("x = 41", "notes")
        assert await there.text("x + 1", "notes") == "42"
        await there.text("y = x", "notes")
        assert await here.text("y", "notes") == "41"
        assert "'x' is not defined" in await bob.text("x", "notes")
        assert await there.text("1 + 1") == "2"
    assert one.workspace.sessions.holds("ann", "notes")
    assert not other.workspace.sessions.holds("ann", "notes")


async def test_a_question_in_a_session_elsewhere_is_asked_and_answered_through_any_replica(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    async with one.person() as here, other.person() as there:
        await here.text("x = 5", "notes")
        found = await there.run("hub.delete(item=x)", "notes")
        assert text_of(await there.answer(token_of(found), "hub.delete(item=x)", "notes")) == "5"
        found = await there.run("hub.delete(item=x + 1)", "notes")
        assert text_of(await here.answer(token_of(found), "hub.delete(item=x + 1)", "notes")) == "6"
    assert (one.hub.deleted, other.hub.deleted) == ([5, 6], [])


async def test_a_client_of_the_handshake_era_reaches_its_session_too(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    async with one.person(mode="legacy") as here, other.person(mode="legacy") as there:
        await here.text("x = 41", "notes")
        assert await there.text("x + 1", "notes") == "42"


async def test_what_the_replica_that_ended_held_is_gone_and_said_so(tmp_path: Path, redis: RedisProcess) -> None:
    prefix = str(tmp_path)
    async with asyncio.timeout(PATIENCE), replica(tmp_path / "there", redis.url, prefix=prefix) as other:
        async with replica(tmp_path / "here", redis.url, prefix=prefix) as one, one.person() as here:
            token = await here.asked(DELETE)
            await here.text("x = 41", "notes")
        async with other.person() as there:
            assert "the replica that held this run is gone" in text_of(await there.answer(token, DELETE))
            assert "SessionLost" in (lost := await there.text("x", "notes"))
            assert "the replica that held it is gone" in lost
            assert "'x' is not defined" in await there.text("x", "notes")
    assert (one.hub.deleted, other.hub.deleted) == ([], [])


async def test_a_client_that_gives_up_ends_the_run_where_it_is(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    async with one.person() as here, other.person() as there:
        await here.text("x = 1", "notes")
        run = asyncio.ensure_future(there.run("while True: pass", "notes"))
        await until(lambda: one.workspace.sessions.listing("ann")["notes"]["runs"] == 2)
        run.cancel()
        await asyncio.wait((run,))
        assert "SessionLost" in await here.text("x", "notes")


async def test_a_reply_that_is_too_large_for_replicas_says_that_it_was(
    replicas: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onetool_team.replica_runs.MAX_BYTES", 2000)
    one, other = replicas
    async with one.person() as here, other.person() as there:
        await here.text("x = 1", "notes")
        assert "ReplyTooLarge" in await there.text("'x' * 5000", "notes")
        assert await there.text("x", "notes") == "1"


async def test_a_replica_that_drains_goes_on_with_what_had_begun_and_begins_nothing(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    async with one.person() as here, other.person() as there:
        await here.text("x = 1", "notes")
        far, near = await here.asked(DELETE), await here.asked(DELETE)
        one.drain.begin()
        assert text_of(await there.answer(far, DELETE)) == "7"
        assert text_of(await here.answer(near, DELETE)) == "7"
        assert "ServerEnding" in await there.text("x", "notes")
        assert await there.text("1 + 1") == "2"
