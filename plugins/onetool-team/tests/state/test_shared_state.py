"""What every shared state does: in memory, and in a real Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from secrets import token_hex

import pytest

from onetool_team.state.memory_state import MemoryState
from onetool_team.state.redis_state import RedisState
from onetool_team.state.shared_state import SharedState, StateUnavailable
from pace import PATIENCE, within
from state.redis_process import RedisProcess, running_redis

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "redis"])
async def state(request: pytest.FixtureRequest) -> AsyncIterator[SharedState]:
    """Each of the two, empty."""
    if request.param == "memory":
        state: SharedState = MemoryState()
    else:
        process: RedisProcess = request.getfixturevalue("redis")
        state = RedisState(process.url, token_hex(8), answer_seconds=PATIENCE)
    yield state
    await state.aclose()


async def test_a_value_is_kept_and_forgotten(state: SharedState) -> None:
    assert await state.get("a") is None
    await state.set("a", b"1")
    await state.set("a", b"\x00\xff")
    assert await state.get("a") == b"\x00\xff"
    await state.delete("a")
    await state.delete("a")
    assert await state.get("a") is None
    assert state.trouble == ""


async def test_a_value_expires(state: SharedState) -> None:
    await state.set("short", b"1", 0.05)
    await state.set("long", b"1", 60)
    await asyncio.sleep(0.1)
    assert await state.get("short") is None
    assert await state.get("long") == b"1"
    assert await state.add("short", b"2", 60)


async def test_a_value_that_is_set_again_without_an_end_has_none(state: SharedState) -> None:
    await state.set("a", b"1", 0.05)
    await state.set("a", b"2")
    await asyncio.sleep(0.1)
    assert await state.get("a") == b"2"


async def test_of_many_who_add_one_succeeds(state: SharedState) -> None:
    added = await asyncio.gather(*(state.add("a", b"%d" % n) for n in range(20)))
    assert sum(added) == 1
    assert await state.get("a") == b"%d" % added.index(True)


async def test_of_many_who_pop_one_gets_it(state: SharedState) -> None:
    await state.set("a", b"1")
    popped = await asyncio.gather(*(state.pop("a") for _ in range(20)))
    assert popped.count(b"1") == 1
    assert popped.count(None) == 19


async def test_every_count_is_another(state: SharedState) -> None:
    assert sorted(await asyncio.gather(*(state.count("a") for _ in range(10)))) == list(range(1, 11))
    assert await state.get("a") == b"10"


async def test_a_lock_is_held_by_one_at_a_time(state: SharedState) -> None:
    inside: list[int] = []
    seen: list[int] = []

    async def hold(number: int) -> None:
        async with state.lock("a", 10):
            inside.append(number)
            await asyncio.sleep(0.005)
            seen.append(len(inside))
            inside.remove(number)

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(hold(number) for number in range(8)))
    assert seen == [1] * 8


async def test_a_lock_is_let_go_of_when_the_block_fails(state: SharedState) -> None:
    with pytest.raises(KeyError):
        async with state.lock("a", 60):
            raise KeyError
    async with asyncio.timeout(PATIENCE), state.lock("a", 60):
        pass


async def test_a_lock_held_too_long_passes_on_and_its_old_holder_lets_go_of_nothing(state: SharedState) -> None:
    async with asyncio.timeout(PATIENCE):
        async with state.lock("a", 0.05):
            other = state.lock("a", 60)
            await other.__aenter__()
        # The first block has ended, and the lock is still the second one's.
        third = asyncio.ensure_future(state.lock("a", 60).__aenter__())
        await asyncio.sleep(0.1)
        assert not third.done()
        await other.__aexit__(None, None, None)
        await third


async def test_locks_of_other_keys_do_not_wait(state: SharedState) -> None:
    async with asyncio.timeout(PATIENCE), state.lock("a", 60), state.lock("b", 60):
        pass


async def test_messages_come_in_order_each_to_one(state: SharedState) -> None:
    for n in range(3):
        await state.send("box", b"%d" % n, 60)
    assert [await state.receive("box", 1) for _ in range(3)] == [b"0", b"1", b"2"]
    assert await state.receive("box", 0.01) is None


async def test_whoever_waits_gets_the_message_when_it_comes(state: SharedState) -> None:
    waiting = [asyncio.ensure_future(state.receive("box", 30)) for _ in range(3)]
    await asyncio.sleep(0.05)
    for n in range(3):
        await state.send("box", b"%d" % n, 60)
    async with asyncio.timeout(PATIENCE):
        assert sorted([await one or b"" for one in waiting]) == [b"0", b"1", b"2"]


async def test_waiting_ends_in_time(state: SharedState) -> None:
    began = time.monotonic()
    with within(5):
        assert await state.receive("box", 0.1) is None
    assert 0.05 < time.monotonic() - began


async def test_messages_that_nobody_reads_are_forgotten(state: SharedState) -> None:
    await state.send("box", b"1", 0.05)
    await asyncio.sleep(0.2)
    assert await state.receive("box", 0.01) is None


async def test_a_mailbox_that_nobody_reads_takes_no_more(state: SharedState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onetool_team.state.memory_state.MOST_MESSAGES", 2)
    monkeypatch.setattr("onetool_team.state.redis_state.MOST_MESSAGES", 2)
    await state.send("box", b"1", 60)
    await state.send("box", b"2", 60)
    with pytest.raises(StateUnavailable):
        await state.send("box", b"3", 60)
    assert await state.receive("box", 1) == b"1"


async def test_a_cancelled_wait_takes_no_message(state: SharedState) -> None:
    waiting = asyncio.ensure_future(state.receive("box", 30))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.wait((waiting,))
    await state.send("box", b"1", 60)
    assert await state.receive("box", 1) == b"1"


async def test_memory_is_bounded_and_expired_values_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("onetool_team.state.memory_state._now", lambda: now)
    state = MemoryState(most=2)
    await state.set("a", b"1", 0.01)
    await state.set("b", b"1")
    with pytest.raises(StateUnavailable):
        await state.set("c", b"1")
    now += 0.02
    await state.set("c", b"1")
    assert await state.get("b") == b"1"


async def test_a_user_of_redis_who_may_use_our_keys_alone_is_enough() -> None:
    rules = "on >a-password ~onetool:* +@read +@write +@connection +@scripting"
    with running_redis("--user", "onetool", *rules.split(), tcp=True) as locked:
        url = locked.url.replace("//", "//onetool:a-password@")
        state, other = (RedisState(url, prefix, answer_seconds=PATIENCE) for prefix in ("onetool", "another"))
        async with state.lock("a", 10):
            assert await state.add("a", b"1", 10)
            assert await state.count("n") == 1
        await state.send("box", b"1", 10)
        assert await state.receive("box", 1) == b"1"
        assert await state.pop("a") == b"1"
        with pytest.raises(StateUnavailable, match="no permissions"):
            await other.get("a")
        await state.aclose()
        await other.aclose()


async def test_prefixes_keep_deployments_apart(redis: RedisProcess) -> None:
    one, other = (RedisState(redis.url, prefix, answer_seconds=PATIENCE) for prefix in ("one", "other"))
    await one.set("a", b"1")
    assert await other.get("a") is None
    assert await one.pop("a") == b"1"
    await one.aclose()
    await other.aclose()


async def test_a_member_is_counted_until_its_time_is_over_or_it_leaves(state: SharedState) -> None:
    for member, seconds in (("stays", 60), ("leaves", 60), ("short", 0.05)):
        await state.join("crowd", member, seconds)
    assert set(await state.members("crowd")) >= {"stays", "leaves"}
    await state.join("crowd", "leaves", 0)
    await asyncio.sleep(0.1)
    assert await state.members("crowd") == ["stays"]
    assert await state.members("another") == []
