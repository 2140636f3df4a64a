"""What can happen to a login between two calls, seen from runs: expiry, a restart, another authorization server."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.browserless_user import BrowserlessUser
from oauth.guarded_app import Person, client_of, guarded_app, parallel
from oauth.resource_server import LoopbackResourceServer

pytestmark = pytest.mark.anyio

ECHO = "guarded.echo(text='hello')"


async def test_tokens_that_expire_in_the_middle_of_a_run_are_renewed_once_and_no_call_fails(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run(ECHO)
        issuer.book.forget_access()  # sooner than it said: the server's 401 tells
        assert await client.run(parallel(6)) == ("[0,1,2,3,4,5]", False)
    assert (issuer.counts["refreshes"], issuer.counts["logins"], issuer.counts["alarms"]) == (1, 1, 0)


@pytest.mark.parametrize("outage", ["503", "429", "refused"])
async def test_an_authorization_server_that_is_down_asks_nobody_to_log_in(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, outage: str
):
    person = Person()
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", person) as client:
        await client.run(ECHO)
        issuer.book.forget_access()
        issuer.stop() if outage == "refused" else issuer.outages.update({"*": outage})
        said, failed = await client.run(ECHO)
        assert failed and "authorization server of 'guarded' is down" in said and "try again" in said
        issuer.start() if outage == "refused" else issuer.outages.clear()
        assert await client.run(ECHO) == ("hello", False)
    assert (len(person.questions), issuer.counts["logins"], issuer.counts["alarms"]) == (1, 1, 0)


async def test_after_a_restart_the_refresh_token_goes_to_the_server_that_issued_it(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", Person()) as client:
        await client.run(ECHO)
    issuer.book.forget_access()
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app) as client:
        assert await client.run(ECHO) == ("hello", False)
    assert (issuer.counts["refreshes"], issuer.counts["logins"]) == (1, 1)
    assert resource.asked["/token"] == 0


async def test_a_redirect_that_comes_twice_or_belongs_to_somebody_else_is_refused(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    pages: list[int] = []

    class Meddler(Person):
        """Somebody else's browser comes first, then the right one twice."""

        async def open(self, url: str) -> None:
            back = await BrowserlessUser().redirected_to(url)
            other = httpx2.URL(back).copy_set_param("state", "of-somebody-else")
            for address in (other, back, back):
                async with httpx2.AsyncClient() as browser:
                    pages.append((await browser.get(address)).status_code)

    person = Meddler(opens="before")
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", person) as client:
        assert await client.run(ECHO) == ("hello", False)
    assert pages == [400, 200, 400]
    assert issuer.counts["logins"] == 1


async def test_another_authorization_server_gets_nothing_of_the_old_login(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    person = Person()
    with LoopbackAuthorizationServer() as other:
        async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", person) as client:
            await client.run(ECHO)
            resource.move_to(other)
            assert await client.run(ECHO) == ("hello", False)
    assert (len(person.questions), other.counts["logins"], other.counts["registrations"]) == (2, 1, 1)
    old = {secret.encode() for secret in issuer.book.secrets} | {client.encode() for client in issuer.book.clients}
    assert not [secret for secret in old - {b"resource-server"} if secret in b"\n".join(other.received)]
