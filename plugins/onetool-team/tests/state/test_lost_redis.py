"""A Redis that is killed, frozen, full or locked: plain runs go on, and what needs it says so until it is back."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from onetool_team.state.redis_connection import ANSWER_SECONDS
from onetool_team.state.redis_state import RedisState
from onetool_team.state.shared_state import SharedState, StateUnavailable
from pace import PATIENCE, TURNS, within
from state.redis_process import RedisProcess, running_redis
from state.replicas import Person, Replica, text_of, two_replicas

pytestmark = pytest.mark.anyio

RUNS = 30
DELETE = "hub.delete(item=7)"
LOST = {"killed": RedisProcess.kill, "frozen": RedisProcess.freeze}
BACK = {"killed": RedisProcess.start, "frozen": RedisProcess.thaw}


async def is_lost(state: SharedState) -> None:
    """Return when a question has found out that the state is lost; at most one answer's time is waited for."""
    with pytest.raises(StateUnavailable):
        async with asyncio.timeout(PATIENCE):
            while True:
                await state.get("anything")


async def is_back(state: SharedState) -> None:
    """Return when the state answers again, which nobody has to help with."""
    for _ in range(int(PATIENCE / 0.05)):
        with suppress(StateUnavailable):
            await state.get("anything")
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come back")


async def median_run(person: Person) -> float:
    """Return how long a plain run takes."""
    taken: list[float] = []
    for _ in range(RUNS):
        began = time.perf_counter()
        assert await person.text("1 + 1") == "2"
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


async def is_no_slower(person: Person, usual: float) -> bool:
    """Return whether a plain run takes as long as usual; what a busy machine adds is not there each time."""
    for _ in range(TURNS):
        if await median_run(person) < 3 * usual + 0.01:
            return True
    return False


@asynccontextmanager
async def two(tmp_path: Path, redis: RedisProcess) -> AsyncGenerator[tuple[Replica, Replica]]:
    async with asyncio.timeout(4 * PATIENCE), two_replicas(tmp_path, redis.url, answer_seconds=ANSWER_SECONDS) as both:
        yield both


@pytest.mark.parametrize("fault", LOST)
async def test_without_redis_plain_runs_go_on_and_the_rest_is_said_in_words(tmp_path: Path, fault: str) -> None:
    lose, find = LOST[fault], BACK[fault]
    with running_redis() as redis:
        async with two(tmp_path, redis) as (one, other), one.person() as here, other.person() as there:
            token, own = await here.asked(DELETE), await here.asked(DELETE)
            await here.text("x = 41", "notes")
            control = await median_run(here)
            lose(redis)
            await is_lost(one.state)
            await is_lost(other.state)
            # In words: what another replica holds. All the rest goes on.
            assert "held by another replica, which cannot be asked now" in text_of(await there.answer(token, DELETE))
            assert "the shared state is unreachable since" in await there.text("x", "notes")
            assert await here.text("x + 1", "notes") == "42"
            assert text_of(await here.answer(own, DELETE)) == "7"
            assert await is_no_slower(here, control)
            find(redis)
            await is_back(one.state)
            await is_back(other.state)
            if fault == "frozen":  # a Redis that was killed has forgotten who is alive until the next beat
                assert text_of(await there.answer(token, DELETE)) == "7"
    assert one.hub.deleted[0] == 7


async def test_a_frozen_redis_costs_one_answers_time_and_then_nothing() -> None:
    with running_redis() as redis:
        state = RedisState(redis.url, answer_seconds=0.5)
        await state.set("a", b"1")
        redis.freeze()
        began = time.monotonic()
        first = await asyncio.gather(*(state.get("a") for _ in range(50)), return_exceptions=True)
        waited = time.monotonic() - began
        assert all(isinstance(one, StateUnavailable) for one in first)
        with within(waited):
            for _ in range(1000):
                with pytest.raises(StateUnavailable):
                    await state.get("a")
        assert "no answer within 0.5 s" in state.trouble
        redis.thaw()
        await is_back(state)
        assert await state.get("a") == b"1"
        assert state.trouble == ""
        await state.aclose()


async def test_a_full_redis_refuses_what_is_new_and_plain_runs_go_on(tmp_path: Path) -> None:
    with running_redis("--maxmemory-policy", "noeviction") as redis:
        async with two(tmp_path, redis) as (one, other), one.person() as here, other.person() as there:
            await here.text("x = 41", "notes")
            control = await median_run(here)
            redis.fill()
            with pytest.raises(StateUnavailable, match="Redis refuses"):
                await one.state.set("new", b"x", 60)
            assert one.state.trouble == "", "it answers"
            assert await is_no_slower(here, control)
            assert await here.text("x + 1", "notes") == "42"
            assert "StateUnavailable" in await there.text("y = 1", "others"), "nobody can note who holds it"


async def test_a_redis_with_another_password_is_said_to_be_so_and_costs_plain_runs_nothing(tmp_path: Path) -> None:
    with running_redis(tcp=True) as good, running_redis("--requirepass", "right-password", tcp=True) as locked:
        async with two(tmp_path, good) as (control, _), control.person() as person:
            usual = await median_run(person)
        url = locked.url.replace("//", "//:wrong-password@")
        async with two_replicas(tmp_path, url, answer_seconds=ANSWER_SECONDS) as (one, _), one.person() as here:
            await is_lost(one.state)
            assert "invalid username-password pair" in one.state.trouble
            assert "wrong-password" not in one.state.trouble
            assert await is_no_slower(here, usual)
            assert "StateUnavailable" in await here.text("x = 1", "notes")


async def test_a_replica_starts_without_redis_and_takes_part_when_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onetool_team.state.presence.BEAT_SECONDS", 0.1)
    redis = RedisProcess(tcp=True).start()
    try:
        redis.kill()
        async with two(tmp_path, redis) as (one, other), one.person() as here, other.person() as there:
            assert await here.text("1 + 1") == "2"
            redis.start()
            await is_back(one.state)
            await is_back(other.state)
            await said(lambda: here.text("x = 41", "notes"), "OK")
            await said(lambda: there.text("x + 1", "notes"), "42")
    finally:
        redis.close()


async def said(run: Callable[[], Awaitable[str]], expected: str) -> None:
    """Return when a run says what is expected: others see a replica from its next beat on."""
    text = ""
    for _ in range(int(PATIENCE / 0.1)):
        text = await run()
        if text.startswith(expected):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(text)
