"""Logins that all replicas of a server use: renewed once for all of them, and unreadable in Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.resource_server import LoopbackResourceServer
from ot.errors import AuthServerDown, LoginNeeded
from ot.servers.auth.account import ServerAccount
from ot.servers.auth.login_state import login_state
from ot.servers.auth.logout import logout
from ot.servers.auth.record import TokenRecord
from ot.servers.auth.shared_token_store import shared_token_stores
from ot.servers.auth.token_auth import renew
from ot.servers.auth.token_store import RecordUnreadable, token_store
from ot.state.redis_state import RedisState
from ot.state.state_keys import StateKeys
from pace import PATIENCE
from servers.auth.login_desk import account_at, logged_in, spec_of_account
from servers.desk import door_to
from state.redis_process import RedisProcess, running_redis

pytestmark = pytest.mark.anyio

KEYS = StateKeys(["k" * 32])


@pytest.fixture(scope="module")
def redis() -> Generator[RedisProcess]:
    with running_redis() as process:
        yield process


@asynccontextmanager
async def replica(account: ServerAccount, redis: RedisProcess, keys: StateKeys = KEYS) -> AsyncGenerator[ServerAccount]:
    """Yield the account as one replica has it."""
    state = RedisState(redis.url, answer_seconds=PATIENCE)
    yield replace(account, shared=shared_token_stores(state, keys))
    await state.aclose()


@pytest.fixture
def account(resource: LoopbackResourceServer, tmp_path: Path) -> ServerAccount:
    return account_at(resource, tmp_path)


async def test_a_login_on_one_replica_is_used_on_the_other(account: ServerAccount, redis: RedisProcess) -> None:
    async with replica(account, redis) as here, replica(account, redis) as there:
        await logged_in(here)
        async with door_to(spec_of_account(there)) as door:
            assert await door.call("echo", text="tea") == "tea"
        assert (await asyncio.to_thread(login_state, there)).place == "the shared state"
        assert not account.directory.exists()
        await logout(there)
        assert await asyncio.to_thread(token_store(here).read) is None


async def test_of_replicas_that_find_the_same_token_expired_one_renews_it(
    account: ServerAccount, redis: RedisProcess, issuer: LoopbackAuthorizationServer
) -> None:
    async with replica(account, redis) as here, replica(account, redis) as there:
        used = (await logged_in(here)).access_token
        work = [asyncio.to_thread(renew, one, token_store(one), used) for one in (here, there, here, there)]
        tokens = {record.access_token for record in await asyncio.gather(*work)}
    assert len(tokens) == 1
    assert used not in tokens
    assert (issuer.counts["refreshes"], issuer.counts["alarms"]) == (1, 0)


async def test_a_refresh_token_that_was_revoked_is_shown_once_by_all_replicas_until_somebody_logs_in(
    account: ServerAccount, redis: RedisProcess, issuer: LoopbackAuthorizationServer
) -> None:
    async with replica(account, redis) as here, replica(account, redis) as there:
        used = (await logged_in(here)).access_token
        issuer.book.revoke_all()
        work = [asyncio.to_thread(renew, one, token_store(one), used) for one in (here, there) * 2]
        ended = await asyncio.gather(*work, return_exceptions=True)
        assert [type(end) for end in ended] == [LoginNeeded] * 4
        assert issuer.counts["/token"] == 2, "the login itself, and one refresh that was refused"
        async with door_to(spec_of_account(here)) as door:
            with pytest.raises(LoginNeeded, match="expired or was revoked"):
                await door.call("echo", text="tea")
            await logged_in(there)
            assert await door.call("echo", text="tea") == "tea"
    assert issuer.counts["alarms"] == 0


async def test_a_logout_on_one_replica_while_another_renews_leaves_no_login_and_no_good_token(
    account: ServerAccount, redis: RedisProcess, issuer: LoopbackAuthorizationServer
) -> None:
    async with replica(account, redis) as here, replica(account, redis) as there:
        used = (await logged_in(here)).access_token
        renewal = asyncio.to_thread(renew, here, token_store(here), used)
        ended, why = await asyncio.gather(renewal, logout(there), return_exceptions=True)
        assert why == ""
        assert await asyncio.to_thread(token_store(here).read) is None
        assert isinstance(ended, TokenRecord | LoginNeeded)
        assert all(token.revoked for token in issuer.book.tokens)
        with pytest.raises(LoginNeeded):
            await asyncio.to_thread(renew, there, token_store(there), used)


async def test_redis_holds_no_token_in_clear_and_a_record_opens_with_its_keys_at_its_place_alone(
    account: ServerAccount, redis: RedisProcess
) -> None:
    state = RedisState(redis.url, answer_seconds=PATIENCE)
    others = StateKeys.ephemeral()
    async with replica(account, redis) as here, replica(account, redis, others) as stranger:
        record = await logged_in(here)
        sealed = await state.get(f"login:{KEYS.hide(account.key)}")
        assert sealed is not None
        assert not any(secret.encode() in sealed for secret in record.secrets)
        assert await asyncio.to_thread(token_store(stranger).read) is None
        await state.set(f"login:{others.hide(account.key)}", sealed)
        with pytest.raises(RecordUnreadable):
            await asyncio.to_thread(token_store(stranger).read)
        other = here.of("somebody else")
        await state.set(f"login:{KEYS.hide(other.key)}", sealed)
        with pytest.raises(RecordUnreadable):
            await asyncio.to_thread(token_store(other).read)
    await state.aclose()


async def test_without_redis_a_call_fails_for_now_and_nobody_is_told_to_log_in(account: ServerAccount) -> None:
    with running_redis() as redis:
        async with replica(account, redis) as here, door_to(spec_of_account(here)) as door:
            await logged_in(here)
            assert await door.call("echo", text="tea") == "tea"
            redis.kill()
            with pytest.raises(AuthServerDown, match="shared state is unreachable"):
                await door.call("echo", text="tea")
            redis.start()
