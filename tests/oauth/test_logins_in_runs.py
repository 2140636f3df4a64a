"""A run that comes to a server where nobody has logged in: its client's user is asked to, and the call is repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.guarded_app import ERAS, Person, client_of, guarded_app
from oauth.resource_server import LoopbackResourceServer

pytestmark = pytest.mark.anyio

ECHO = "guarded.echo(text='hello')"
PARALLEL = "import asyncio\nawait asyncio.gather(*[guarded.echo(text=str(i)) for i in range(6)])"
STORES = """
for i in range(3):
    try:
        guarded.store(text="x")
    except Exception as error:
        print(error)
"""
COMMAND = "onetool auth login guarded"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("opens", ["before", "after"])
async def test_a_user_logs_in_by_opening_an_address_and_the_run_goes_on(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, era: str, opens: str
):
    person = Person(opens=opens)
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, era, person) as client:
        assert await client.run(ECHO) == ("hello", False)
        assert await client.run(ECHO) == ("hello", False)
    assert (len(person.questions), person.pages, issuer.counts["logins"]) == (1, [200], 1)
    assert person.questions[0].url.startswith(f"{issuer.origin}/authorize?")
    assert "'guarded' asks you to log in" in person.questions[0].message


@pytest.mark.parametrize("era", ERAS)
async def test_agreeing_is_not_logging_in_and_the_run_waits_only_so_long(
    tmp_path: Path, resource: LoopbackResourceServer, era: str
):
    person = Person(opens="never")
    async with guarded_app(tmp_path, resource) as app, client_of(app, era, person) as client:
        said, failed = await client.run(ECHO)
        assert failed and COMMAND in said and "nobody finished it in the browser in time" in said
    assert resource.calls["echo"] == 0


@pytest.mark.parametrize("era", ERAS)
async def test_who_declines_is_not_asked_again_in_this_run_and_is_told_the_command(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, era: str
):
    person = Person("decline", opens="never")
    async with guarded_app(tmp_path, resource) as app, client_of(app, era, person) as client:
        said, failed = await client.run(PARALLEL)
    assert failed and COMMAND in said
    assert (len(person.questions), issuer.counts["logins"]) == (1, 0)


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_be_asked_gets_the_command_and_nothing_is_registered(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, era: str
):
    async with guarded_app(tmp_path, resource) as app, client_of(app, era) as client:
        said, failed = await client.run(ECHO)
    assert failed and COMMAND in said
    assert (issuer.counts["registrations"], issuer.counts["/authorize"]) == (0, 0)


@pytest.mark.parametrize("era", ERAS)
async def test_calls_at_the_same_time_ask_once_and_all_go_on(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, era: str
):
    person = Person()
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, era, person) as client:
        await client.run(ECHO)
        issuer.book.revoke_all()
        said, failed = await client.run(PARALLEL)
    assert not failed and said == '["0","1","2","3","4","5"]'
    assert (len(person.questions), issuer.counts["logins"], resource.calls["echo"]) == (2, 2, 7)


@pytest.mark.parametrize("era", ERAS)
async def test_more_scope_is_asked_for_once_and_added_to_what_the_login_has(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer, era: str
):
    person = Person()
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, era, person) as client:
        assert await client.run("guarded.store(text='tea'), guarded.store(text='milk')") == (
            '["stored tea","stored milk"]',
            False,
        )
        assert (await client.run(ECHO))[0] == "hello"
    assert (len(person.questions), issuer.counts["logins"], resource.calls["store"]) == (2, 2, 2)
    assert "to allow 'write'" in person.questions[1].message
    assert {"read", "write"} <= set(issuer.book.tokens[-1].scope.split())


async def test_more_scope_that_is_not_given_is_asked_for_once_a_run(
    tmp_path: Path, issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    person = Person()
    async with guarded_app(tmp_path, resource, 20) as app, client_of(app, "auto", person) as client:
        await client.run(ECHO)
        issuer.book.withheld.add("write")
        said, _ = await client.run(STORES)
    assert said.count(f"{COMMAND} --scope 'write'") == 3
    assert (len(person.questions), resource.calls["store"]) == (2, 0)
