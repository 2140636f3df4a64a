"""What logins of a team's users need: an authorization server, a guarded server, and what replicas share."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator

import pytest

from oauth.conftest import issuer, no_keyring, resource
from onetool_team.state.memory_state import MemoryState
from onetool_team.state.redis_state import RedisState
from onetool_team.state.shared_state import SharedState
from pace import PATIENCE
from state.conftest import redis
from state.redis_process import RedisProcess

__all__ = ["issuer", "no_keyring", "redis", "resource"]


@pytest.fixture(params=["memory", "redis"])
async def states(request: pytest.FixtureRequest) -> AsyncGenerator[tuple[SharedState, SharedState]]:
    """What the replica of the run shares, and what that of the pages does."""
    if request.param == "memory":
        state = MemoryState()
        yield state, state
        return
    process: RedisProcess = request.getfixturevalue("redis")
    prefix = secrets.token_hex(8)
    both = (
        RedisState(process.url, prefix, answer_seconds=PATIENCE),
        RedisState(process.url, prefix, answer_seconds=PATIENCE),
    )
    yield both
    for state in both:
        await state.aclose()
