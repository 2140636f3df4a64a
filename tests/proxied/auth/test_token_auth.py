"""A login in use: on every call, renewed once and in time, and never asking anybody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.resource_server import LoopbackResourceServer
from ot.errors import AuthServerDown, LoginNeeded
from ot.proxied import guarded_client
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.token_auth import TokenAuth, renew
from ot.proxied.auth.token_record import TokenRecord
from ot.proxied.auth.token_store import LOCK_SECONDS, TokenStore
from pace import PATIENCE
from proxied.auth.login_desk import account_at, logged_in, overwritten, spec_of_account, stored
from proxied.desk import Door, door_to, until

pytestmark = pytest.mark.anyio


@pytest.fixture
def account(resource: LoopbackResourceServer, tmp_path: Path) -> ServerAccount:
    return account_at(resource, tmp_path)


@pytest.fixture
async def door(account: ServerAccount) -> AsyncGenerator[Door]:
    async with door_to(spec_of_account(account)) as door:
        yield door


async def test_a_call_without_a_login_says_the_command_and_the_next_call_after_the_login_works(
    account: ServerAccount, door: Door, issuer: LoopbackAuthorizationServer
):
    with pytest.raises(LoginNeeded, match="run `onetool auth login guarded`"):
        await door.call("echo", text="tea")
    assert issuer.counts["logins"] == 0
    assert door.state["state"] == "login needed"
    await logged_in(account)
    assert await door.call("echo", text="tea") == "tea"


async def test_a_token_that_the_server_does_not_take_any_more_is_renewed_once_for_all_who_used_it(
    account: ServerAccount, door: Door, issuer: LoopbackAuthorizationServer
):
    await logged_in(account)
    await door.call("echo", text="warm")
    issuer.book.forget_access()  # the record says that it is good for an hour
    await asyncio.gather(*(door.call("echo", text=str(n)) for n in range(6)))
    assert issuer.counts["refreshes"] == 1
    assert stored(account).refused == ""


async def test_a_token_is_renewed_before_it_expires_and_one_that_is_not_due_is_left_alone(
    account: ServerAccount, door: Door, issuer: LoopbackAuthorizationServer
):
    await logged_in(account)
    await door.call("echo", text="fresh")
    assert issuer.counts["refreshes"] == 0
    now = time.time()
    overwritten(account, obtained_at=now - 3500, expires_at=now + 100)
    await door.call("echo", text="due")
    assert issuer.counts["refreshes"] == 1


async def test_a_revoked_login_asks_for_a_new_one_only_once_and_the_session_goes_on_after_it(
    account: ServerAccount, door: Door, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    await logged_in(account)
    await door.call("echo", text="before")
    issuer.book.revoke_all()
    for _ in range(3):
        with pytest.raises(LoginNeeded, match="expired or was revoked"):
            await door.call("echo", text="lost")
    assert issuer.counts["/token"] == 2, "the login itself, and one refresh that was refused"
    before = resource.asked["/mcp"]
    await logged_in(account)
    assert await door.call("echo", text="after") == "after"
    assert resource.asked["/mcp"] == before + 2, "one question of the login, one call: no new session"


@pytest.mark.parametrize("outage", ["503", "429"])
async def test_an_authorization_server_that_is_down_is_not_a_login_and_loses_nothing(
    account: ServerAccount, door: Door, issuer: LoopbackAuthorizationServer, outage: str
):
    await logged_in(account)
    await door.call("echo", text="before")
    record = overwritten(account, expires_at=time.time() - 1)
    issuer.book.forget_access()
    issuer.outages["/token"] = outage
    with pytest.raises(AuthServerDown, match=r"the login is kept, try again in 1 s|try again"):
        await door.call("echo", text="down")
    assert stored(account).refresh_token == record.refresh_token
    issuer.outages.clear()
    assert await door.call("echo", text="back") == "back"
    assert (issuer.counts["logins"], issuer.counts["alarms"]) == (1, 0)


async def test_an_early_renewal_that_fails_holds_up_nobody_while_the_token_is_good(
    account: ServerAccount, door: Door, issuer: LoopbackAuthorizationServer
):
    await logged_in(account)
    now = time.time()
    overwritten(account, obtained_at=now - 3500, expires_at=now + 100)
    issuer.outages["/token"] = "503"
    for text in ("a", "b", "c"):
        assert await door.call("echo", text=text) == text
    assert issuer.counts["/token"] == 2, "the login, and one attempt: the next one has a pause before it"


async def test_a_request_that_is_cancelled_while_the_login_is_renewed_takes_no_other_with_it(
    account: ServerAccount, issuer: LoopbackAuthorizationServer
):
    await logged_in(account)
    before, auth = overwritten(account, expires_at=time.time() - 1), TokenAuth(account, lambda why: None)
    flows = [auth.async_auth_flow(httpx2.Request("POST", account.url)) for _ in range(2)]
    with TokenStore(account).lock():  # the renewal waits for it
        cancelled, other = (asyncio.ensure_future(anext(flow)) for flow in flows)
        await until(lambda: auth.is_renewing)
        cancelled.cancel()
        await asyncio.wait([cancelled])
    assert before.access_token not in (await asyncio.wait_for(other, PATIENCE)).headers["authorization"]
    assert (issuer.counts["refreshes"], issuer.counts["alarms"]) == (1, 0)
    for flow in flows:
        await flow.aclose()


async def test_an_expired_token_is_renewed_once_for_all_who_find_it(
    account: ServerAccount, issuer: LoopbackAuthorizationServer
):
    used = (await logged_in(account)).access_token
    # Each has a store of its own, as processes do.
    work = (asyncio.to_thread(renew, account, TokenStore(account), used) for _ in range(4))
    tokens = {record.access_token for record in await asyncio.gather(*work)}
    assert len(tokens) == 1 and used not in tokens
    assert (issuer.counts["refreshes"], issuer.counts["alarms"]) == (1, 0)


@pytest.mark.parametrize(("then", "why"), [("slowly", "took longer than 0.5 s"), ("without end", "longer than 1 MB")])
async def test_an_answer_that_comes_slowly_or_without_end_is_given_up_while_the_login_is_locked(
    account: ServerAccount, issuer: LoopbackAuthorizationServer, monkeypatch: pytest.MonkeyPatch, then: str, why: str
):
    """Else another replica would use the same refresh token, and the authorization server revoke the login for it."""
    assert guarded_client.ANSWER_SECONDS < 0.75 * LOCK_SECONDS
    monkeypatch.setattr(guarded_client, "ANSWER_SECONDS", 0.5 if then == "slowly" else PATIENCE)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b" " if then == "slowly" else b" " * 65536)
                await writer.drain()
                await asyncio.sleep(0.05 if then == "slowly" else 0)
        writer.close()

    record = await logged_in(account)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        overwritten(account, token_endpoint=f"http://127.0.0.1:{port}/token")
        with pytest.raises(AuthServerDown, match=why):
            await asyncio.to_thread(renew, account, TokenStore(account), record.access_token)
    assert stored(account).refresh_token == record.refresh_token


async def test_a_late_refusal_neither_spoils_a_new_login_nor_undoes_a_logout(
    account: ServerAccount, issuer: LoopbackAuthorizationServer, monkeypatch: pytest.MonkeyPatch
):
    """Whatever the lock was worth: a process may have been stopped for longer than it lasts."""
    used, store = await logged_in(account), TokenStore(account)
    new = replace(used, access_token="of-the-new-login", refresh_token="its-own")

    def refused_after(happened: Callable[[], None]) -> None:
        def refuse(account: ServerAccount, record: TokenRecord) -> TokenRecord:
            happened()
            raise LoginNeeded(account.server, "the login has expired or was revoked")

        monkeypatch.setattr("ot.proxied.auth.token_auth.refresh_record", refuse)

    refused_after(lambda: store.write(new))
    found = await asyncio.to_thread(renew, account, TokenStore(account), used.access_token)
    assert found.access_token == stored(account).access_token == "of-the-new-login"
    assert stored(account).refused == ""
    refused_after(store.delete)
    with pytest.raises(LoginNeeded):
        await asyncio.to_thread(renew, account, TokenStore(account), "of-the-new-login")
    assert store.read() is None


async def test_no_other_origin_gets_the_token(account: ServerAccount):
    await logged_in(account)
    auth = TokenAuth(account, lambda why: None)
    for url, has_token in ((account.url, True), (account.url.replace("127.0.0.1", "localhost"), False)):
        flow = auth.async_auth_flow(httpx2.Request("POST", url))
        assert ("authorization" in (await anext(flow)).headers) is has_token
        await flow.aclose()


async def test_a_server_that_refuses_every_new_token_is_not_given_one_at_each_call(
    account: ServerAccount, door: Door, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    await logged_in(account)
    await door.call("echo", text="before")
    with LoopbackAuthorizationServer() as other:
        resource.move_to(other)
        for _ in range(3):
            with pytest.raises(LoginNeeded, match="refuses the tokens"):
                await door.call("echo", text="moved")
        assert issuer.counts["refreshes"] == 1
        assert other.counts["/token"] == 0, "another authorization server never sees the tokens"
        await logged_in(account)
        assert await door.call("echo", text="moved") == "moved"
        assert stored(account).issuer.rstrip("/") == other.origin


async def test_a_missing_scope_names_the_command_that_asks_for_it_and_for_what_was_granted_before(
    account: ServerAccount, door: Door, resource: LoopbackResourceServer
):
    await logged_in(account)
    with pytest.raises(LoginNeeded, match="--scope 'write'"):
        await door.call("store", text="tea")
    await logged_in(account, scope="write")
    assert await door.call("store", text="tea") == "stored tea"
    assert {"read", "write"} <= set(stored(account).scope.split())


async def test_two_principals_have_a_login_and_a_connection_each(account: ServerAccount, door: Door):
    await logged_in(account)
    await door.call("echo", text="mine")
    spec = spec_of_account(account)
    assert spec.of("someone else").key != spec.key and spec.of(account.principal) is spec
    async with door_to(spec.of("someone else")) as other:
        connection = other.pool.connection(other.spec)
        with pytest.raises(LoginNeeded):
            await connection.ready()
