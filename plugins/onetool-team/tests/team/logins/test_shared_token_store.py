"""Logins that all replicas of a server use: renewed once for all of them, and unreadable where they are kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.resource_server import LoopbackResourceServer
from onetool_team.ledger.postgres_sessions import PostgresSessions
from onetool_team.logins.shared_token_store import LoginRecords, StateRecords, shared_token_stores
from onetool_team.postgres.logins import PostgresLogins
from onetool_team.postgres.team_rows import TeamRows
from onetool_team.state.redis_state import RedisState
from onetool_team.state.state_keys import StateKeys
from ot.errors import AuthServerDown, LoginNeeded
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.login_state import login_state
from ot.proxied.auth.logout import logout
from ot.proxied.auth.token_auth import renew
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.auth.token_store import RecordUnreadable, token_store
from pace import PATIENCE
from postgres_server import PostgresServer, postgres_server
from proxied.auth.login_desk import account_at, logged_in, spec_of_account
from proxied.desk import door_to
from state.redis_process import RedisProcess, running_redis

pytestmark = pytest.mark.anyio

KEYS = StateKeys(["k" * 32])


@pytest.fixture(scope="module")
def redis() -> Generator[RedisProcess]:
    with running_redis() as process:
        yield process


@pytest.fixture(scope="module")
def postgres() -> Generator[PostgresServer]:
    with postgres_server() as server:
        yield server


type Place = Callable[[StateKeys], AbstractAsyncContextManager[LoginRecords]]
"""Opens the records of one replica."""


def in_redis(process: RedisProcess) -> Place:
    """Return how a replica opens those in Redis."""

    @asynccontextmanager
    async def opened(keys: StateKeys) -> AsyncGenerator[LoginRecords]:
        state = RedisState(process.url, answer_seconds=PATIENCE)
        yield StateRecords(state, keys)
        await state.aclose()

    return opened


def in_postgres(server: PostgresServer) -> Place:
    """Return how a replica opens those in PostgreSQL."""

    @asynccontextmanager
    async def opened(keys: StateKeys) -> AsyncGenerator[LoginRecords]:
        sessions = PostgresSessions(server.address, "logins", answer_seconds=PATIENCE)
        yield PostgresLogins(TeamRows(sessions, keys))
        await sessions.aclose()

    return opened


@pytest.fixture(params=["redis", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    kind = request.getfixturevalue(request.param)
    return in_redis(kind) if request.param == "redis" else in_postgres(kind)


@asynccontextmanager
async def replica(account: ServerAccount, place: Place, keys: StateKeys = KEYS) -> AsyncGenerator[ServerAccount]:
    """Yield the account as one replica has it."""
    async with place(keys) as records:
        yield replace(account, shared=shared_token_stores(records))


@pytest.fixture
def account(resource: LoopbackResourceServer, tmp_path: Path) -> ServerAccount:
    return account_at(resource, tmp_path)


async def test_a_login_on_one_replica_is_used_on_the_other(account: ServerAccount, place: Place) -> None:
    async with replica(account, place) as here, replica(account, place) as there:
        await logged_in(here)
        async with door_to(spec_of_account(there)) as door:
            assert await door.call("echo", text="tea") == "tea"
        assert (await asyncio.to_thread(login_state, there)).place == "the shared state"
        assert not account.directory.exists()
        await logout(there)
        assert await asyncio.to_thread(token_store(here).read) is None


async def test_of_replicas_that_find_the_same_token_expired_one_renews_it(
    account: ServerAccount, place: Place, issuer: LoopbackAuthorizationServer
) -> None:
    async with replica(account, place) as here, replica(account, place) as there:
        used = (await logged_in(here)).access_token
        work = [asyncio.to_thread(renew, one, token_store(one), used) for one in (here, there, here, there)]
        tokens = {record.access_token for record in await asyncio.gather(*work)}
    assert len(tokens) == 1
    assert used not in tokens
    assert (issuer.counts["refreshes"], issuer.counts["alarms"]) == (1, 0)


async def test_a_refresh_token_that_was_revoked_is_shown_once_by_all_replicas_until_somebody_logs_in(
    account: ServerAccount, place: Place, issuer: LoopbackAuthorizationServer
) -> None:
    async with replica(account, place) as here, replica(account, place) as there:
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
    account: ServerAccount, place: Place, issuer: LoopbackAuthorizationServer
) -> None:
    async with replica(account, place) as here, replica(account, place) as there:
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
    async with replica(account, in_redis(redis)) as here, replica(account, in_redis(redis), others) as stranger:
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
        async with replica(account, in_redis(redis)) as here, door_to(spec_of_account(here)) as door:
            await logged_in(here)
            assert await door.call("echo", text="tea") == "tea"
            redis.kill()
            with pytest.raises(AuthServerDown, match="shared state is unreachable"):
                await door.call("echo", text="tea")
            redis.start()


async def test_postgres_holds_no_token_in_clear_and_a_record_opens_with_its_keys_in_its_row_alone(
    account: ServerAccount, postgres: PostgresServer
) -> None:
    place, others = in_postgres(postgres), StateKeys.ephemeral()
    async with replica(account, place) as here, replica(account, place, others) as stranger:
        record = await logged_in(here)
        columns = "account, principal, server, changed"
        shown = postgres.run(f"SELECT {columns} FROM logins.logins")
        assert f"|{account.server}|" in shown
        assert not any(secret in postgres.run("SELECT * FROM logins.logins") for secret in record.secrets)
        assert KEYS.hide(account.principal) in shown
        assert await asyncio.to_thread(token_store(stranger).read) is None
        for keys, somebody in ((others, stranger), (KEYS, here.of("somebody else"))):
            name = keys.hide(somebody.key)
            taken = f"SELECT '{name}', principal, server, record, changed FROM logins.logins LIMIT 1"
            postgres.run(f"INSERT INTO logins.logins (account, principal, server, record, changed) {taken}")
            with pytest.raises(RecordUnreadable):
                await asyncio.to_thread(token_store(somebody).read)


async def test_who_dies_while_it_renews_a_login_keeps_others_waiting_no_longer_than_it_may_take(
    account: ServerAccount, postgres: PostgresServer
) -> None:
    place = in_postgres(postgres)
    async with place(KEYS) as dead, place(KEYS) as alive:
        held = dead.lock(account, 60.0)
        await held.__aenter__()
        waits = asyncio.ensure_future(_locked(alive, account))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(waits), 0.3)
        postgres.run("UPDATE logins.login_locks SET until = clock_timestamp()")
        await asyncio.wait_for(waits, PATIENCE)
        assert postgres.run("SELECT count(*) FROM logins.login_locks") == "0"
        await held.__aexit__(None, None, None)


async def _locked(records: LoginRecords, account: ServerAccount) -> None:
    async with records.lock(account, 60.0):
        pass


async def test_without_postgres_a_call_fails_for_now_and_nobody_is_told_to_log_in(
    account: ServerAccount, postgres: PostgresServer
) -> None:
    async with replica(account, in_postgres(postgres)) as here, door_to(spec_of_account(here)) as door:
        await logged_in(here)
        assert await door.call("echo", text="tea") == "tea"
        postgres.kill()
        try:
            with pytest.raises(AuthServerDown, match="PostgreSQL is unreachable"):
                await door.call("echo", text="tea")
        finally:
            postgres.start()
