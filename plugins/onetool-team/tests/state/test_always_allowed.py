"""What a principal always allows, on every replica."""

from __future__ import annotations

import asyncio
from secrets import token_hex

import pytest

from onetool_team.state.always_allowed import AlwaysAllowed
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.redis_state import RedisState
from onetool_team.state.state_keys import StateKeys
from pace import PATIENCE
from state.redis_process import RedisProcess

pytestmark = pytest.mark.anyio


async def test_what_is_said_on_one_replica_holds_on_the_other(redis: RedisProcess) -> None:
    prefix, keys = token_hex(8), StateKeys.ephemeral()
    states = [RedisState(redis.url, prefix, answer_seconds=PATIENCE) for _ in range(2)]
    one, other = (AlwaysAllowed(state, keys) for state in states)
    await asyncio.gather(one.add("ann", "mail.send"), other.add("ann", "file.write"), one.add("ann", "mail.send"))
    assert sorted(await AlwaysAllowed(states[1], keys).patterns("ann")) == ["file.write", "mail.send"]
    assert await one.patterns("bob") == ()
    assert await one.forget("ann", "mail") == ("mail.send",)
    assert await AlwaysAllowed(states[1], keys).patterns("ann") == ("file.write",)
    for state in states:
        await state.aclose()


async def test_what_somebody_else_wrote_allows_nothing() -> None:
    state, keys = MemoryState(), StateKeys.ephemeral()
    forged = AlwaysAllowed(state, StateKeys.ephemeral())
    await forged.add("ann", "*")
    assert await AlwaysAllowed(state, keys).patterns("ann") == ()


async def test_what_one_principal_allowed_cannot_be_moved_to_another() -> None:
    state, keys = MemoryState(), StateKeys.ephemeral()
    await AlwaysAllowed(state, keys).add("ann", "mail.send")
    ((place, sealed),) = [(key, value.data) for key, value in state._values.items()]  # pyright: ignore[reportPrivateUsage] - as whoever can write to Redis
    await AlwaysAllowed(state, keys).add("bob", "file.read")
    other = next(key for key in state._values if key != place)  # pyright: ignore[reportPrivateUsage] - as above
    await state.set(other, sealed)
    assert await AlwaysAllowed(state, keys).patterns("bob") == ()


async def test_a_run_after_another_asks_nobody() -> None:
    state = MemoryState()
    allowed = AlwaysAllowed(state, StateKeys.ephemeral())
    await allowed.add("ann", "mail.send")
    await state.aclose()
    assert await allowed.patterns("ann") == ("mail.send",)
