"""Tokens that only the authorization server can read: it is asked, once, and its answer is kept for a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from oauth.authorization_server import RESOURCE_SERVER, LoopbackAuthorizationServer
from oauth.issued_tokens import IssuedToken
from onetool_team.auth.authenticators import open_authenticator
from onetool_team.auth.introspection import AT_ONCE, GOOD_SECONDS, IntrospectedTokens
from onetool_team.auth.issuer_documents import open_client
from onetool_team.identity import Authenticator, TokenRefused, TokensUncheckable
from onetool_team.settings import AccessTokens, Http
from ot.config.secrets import Secrets
from ot.errors import ConfigError
from ot.proxied.internal_addresses import AddressRule
from pace import PATIENCE
from team.auth.forged_tokens import OURS, Forge

pytestmark = pytest.mark.anyio


def settings(issuer: LoopbackAuthorizationServer, secret: str = "${IDP_SECRET}") -> AccessTokens:
    endpoint = {"url": f"{issuer.origin}/introspect", "client_id": RESOURCE_SERVER, "client_secret": secret}
    return AccessTokens.model_validate({"issuer": issuer.origin, "introspection": endpoint})


@asynccontextmanager
async def opened(issuer: LoopbackAuthorizationServer) -> AsyncGenerator[Authenticator]:
    """Yield what asks *issuer*, with the secret that the operator keeps apart."""
    http = Http(public_url="https://tools.example.com", oauth=settings(issuer))
    checks = open_authenticator(http, Secrets({"IDP_SECRET": issuer.resource_secret}))
    assert checks
    try:
        yield checks
    finally:
        await checks.aclose()


def issued(issuer: LoopbackAuthorizationServer, **other: Any) -> IssuedToken:
    """Return a token that the server knows; *other* fields are laid over a good one's."""
    usual: dict[str, Any] = {
        "access": f"opaque-{len(issuer.book.tokens)}-token",
        "refresh": "",
        "client_id": "app",
        "scope": "run",
    }
    usual |= {"user": "ann", "resource": OURS, "expires_at": time.time() + 600, "family": "f"}
    token = IssuedToken(**{**usual, **other})
    issuer.book.add(token)
    return token


async def test_an_active_token_names_its_principal_and_the_server_is_asked_once(issuer: LoopbackAuthorizationServer):
    issuer.book.told["ann"] = {"groups": ["staff"], "iss": issuer.origin}
    token = issued(issuer, scope="run admin").access
    async with opened(issuer) as checks:
        found = await asyncio.gather(*(checks.identify(token) for _ in range(20)))
        assert await checks.identify(token) == found[0]
    assert (found[0].principal, found[0].groups) == (f"{issuer.origin}|ann", {"staff"})
    assert found[0].scopes == {"run", "admin"}
    assert issuer.counts["/introspect"] == 1


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"resource": "https://other.example.com/mcp"}, {}),
        ({"resource": ""}, {}),
        ({"revoked": True}, {}),
        ({"expires_at": 1.0}, {}),
        ({"scope": "read"}, {}),
        ({}, {"iss": "https://evil.example.com"}),
        ({}, {"aud": None}),
        ({}, {"aud": [OURS, 1]}),
        ({}, {"sub": ""}),
        ({}, {"sub": 7}),
        ({}, {"active": "true"}),
        ({}, {"active": 1}),
        ({}, {"exp": "soon"}),
        ({}, {"exp": True}),
        ({}, {"exp": 1}),
        ({}, {"nbf": 99_999_999_999}),
        ({}, {"groups": "staff"}),
        ({}, {"cnf": {"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}}),
    ],
)
async def test_what_is_not_for_this_server_is_refused_and_a_good_token_passes_after_it(
    standing: LoopbackAuthorizationServer, other: dict[str, Any], told: dict[str, Any]
):
    issuer, before = standing, standing.counts["/introspect"]
    bad = issued(issuer, user="bob", **other).access
    issuer.book.told["bob"] = told
    async with opened(issuer) as checks:
        for _ in range(3):
            with pytest.raises(TokenRefused):
                await checks.identify(bad)
        assert issuer.counts["/introspect"] == before + 1, "a refusal is kept for a moment, too"
        assert await checks.identify(issued(issuer).access)


async def test_an_unknown_token_is_refused(issuer: LoopbackAuthorizationServer):
    async with opened(issuer) as checks:
        with pytest.raises(TokenRefused, match="not active"):
            await checks.identify("nobody-issued-this-token")


async def test_a_signed_token_is_checked_with_keys_and_not_asked_about(
    issuer: LoopbackAuthorizationServer, forge: Forge
):
    async with opened(issuer) as checks:
        assert await checks.identify(forge.token())
    assert (issuer.counts["/introspect"], issuer.counts["/jwks"]) == (0, 1)


async def test_an_answer_is_kept_neither_past_its_time_nor_past_the_expiry(issuer: LoopbackAuthorizationServer):
    now = time.time()
    oauth = settings(issuer, issuer.resource_secret)
    assert oauth.introspection
    async with open_client(AddressRule((issuer.origin,))) as client:
        checks = IntrospectedTokens(oauth, oauth.introspection, OURS, client, clock=lambda: now)
        long, short = issued(issuer), issued(issuer, expires_at=now + 5)
        await checks.identify(long.access)
        await checks.identify(short.access)
        issuer.book.revoke_all()
        now += GOOD_SECONDS - 1
        assert await checks.identify(long.access), "not asked again yet"
        with pytest.raises(TokenRefused):
            await checks.identify(short.access)
        now += 2
        with pytest.raises(TokenRefused):
            await checks.identify(long.access)


@pytest.mark.parametrize("how", ["503", "429", "401", "hang", "stopped"])
async def test_while_the_server_is_away_nothing_is_said_about_a_token(
    issuer: LoopbackAuthorizationServer, how: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onetool_team.auth.issuer_documents.SECONDS", 0.3)
    known, new = issued(issuer).access, issued(issuer).access
    async with opened(issuer) as checks:
        assert await checks.identify(known)
        if how == "stopped":
            await asyncio.to_thread(issuer.stop)
        else:
            issuer.outages["*"] = how
        with pytest.raises(TokensUncheckable):
            await checks.identify(new)
        assert await checks.identify(known), "what was answered a moment ago holds"
        issuer.outages.clear()
        if how == "stopped":
            await asyncio.to_thread(issuer.start)
        assert await checks.identify(new), "an outage is not kept as an answer"


async def test_a_flood_of_invented_tokens_neither_pushes_out_nor_delays_those_that_were_good(
    issuer: LoopbackAuthorizationServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onetool_team.kept_answers.MAX_KEPT", 20)
    now = time.time()
    oauth = settings(issuer, issuer.resource_secret)
    assert oauth.introspection
    good, invented = issued(issuer).access, [f"invented-{number}" for number in range(50)]
    async with open_client(AddressRule((issuer.origin,))) as client:
        checks = IntrospectedTokens(oauth, oauth.introspection, OURS, client, clock=lambda: now)
        assert await checks.identify(good)
        refused = await asyncio.gather(*map(checks.identify, invented), return_exceptions=True)
        assert {type(one) for one in refused} == {TokenRefused}
        asked = issuer.counts["/introspect"]
        assert await checks.identify(good), "still kept"
        assert issuer.counts["/introspect"] == asked
        now += GOOD_SECONDS + 1
        held, turns = asyncio.Event(), 0

        async def held_up(client: Any, url: str, **sent: Any) -> dict[str, Any]:
            nonlocal turns
            turns += 1
            if sent["data"]["token"] != good:
                await held.wait()
            return {"active": True, "sub": "ann", "aud": OURS, "scope": "run"}

        monkeypatch.setattr("onetool_team.auth.introspection.fetch_json", held_up)
        flood = [asyncio.create_task(checks.identify(token)) for token in invented]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(checks.identify(good), PATIENCE)
        assert turns == AT_ONCE + 1
        held.set()
        await asyncio.gather(*flood)


async def test_one_who_gives_up_does_not_end_the_question_of_the_others(issuer: LoopbackAuthorizationServer):
    token = issued(issuer).access
    async with opened(issuer) as checks:
        first, second = (asyncio.create_task(checks.identify(token)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).name == "ann"
    assert issuer.counts["/introspect"] == 1


async def test_a_wrong_secret_of_ours_is_not_the_clients_fault(issuer: LoopbackAuthorizationServer):
    oauth = settings(issuer, "wrong")
    assert oauth.introspection
    async with open_client(AddressRule((issuer.origin,))) as client:
        checks = IntrospectedTokens(oauth, oauth.introspection, OURS, client)
        with pytest.raises(TokensUncheckable, match="HTTP 401"):
            await checks.identify(issued(issuer).access)


async def test_a_secret_that_is_not_set_is_said_at_the_start(issuer: LoopbackAuthorizationServer):
    http = Http(public_url="https://tools.example.com", oauth=settings(issuer))
    with pytest.raises(ConfigError, match=r"http\.oauth\.introspection\.client_secret needs IDP_SECRET"):
        open_authenticator(http, Secrets())


async def test_without_an_address_there_is_no_audience_to_check(issuer: LoopbackAuthorizationServer):
    with pytest.raises(ConfigError, match="public_url"):
        open_authenticator(Http(oauth=settings(issuer)), Secrets())
    with pytest.raises(ConfigError, match="IDP_SECRET"):
        open_authenticator(Http(oauth=settings(issuer)), Secrets(), "http://127.0.0.1:9000")


async def test_the_token_is_not_in_the_log(issuer: LoopbackAuthorizationServer, caplog: pytest.LogCaptureFixture):
    token = issued(issuer).access
    issuer.outages["/introspect"] = "503"
    async with opened(issuer) as checks:
        with pytest.raises(TokensUncheckable) as failed:
            await checks.identify(token)
    assert token not in caplog.text and token not in str(failed.value) and issuer.resource_secret not in caplog.text
    assert "/introspect" in caplog.text
