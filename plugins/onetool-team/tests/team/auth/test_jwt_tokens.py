"""Signed access tokens, from a real authorization server on loopback: in use, forged, and while it is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import RSAKey
from joserfc.jws import validate_compact

from oauth.authorization_server import METADATA, LoopbackAuthorizationServer
from oauth.signing_keys import rsa_key
from onetool_team.auth.authenticators import TokenChecks, open_authenticator
from onetool_team.auth.claimed_identity import principal_of
from onetool_team.auth.issuer_documents import discover_keys, fetch_json, metadata_urls, open_client
from onetool_team.auth.issuer_keys import FRESH_SECONDS, KEPT_SECONDS, RETRY_SECONDS, IssuerKeys
from onetool_team.auth.jwt_tokens import JwtTokens
from onetool_team.auth.static_tokens import StaticTokens
from onetool_team.identity import Authenticator, Identity, TokenRefused, TokensUncheckable
from onetool_team.kept_answers import KeptAnswers, digest_of
from onetool_team.settings import AccessTokens, Http
from ot.config.secrets import Secrets
from ot.proxied.internal_addresses import AddressRule
from pace import PATIENCE
from team.auth.forged_tokens import ATTACKS, LEEWAY, OURS, Forge, accepting, forge_of

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(http: Http) -> AsyncGenerator[Authenticator]:
    """Yield what checks tokens by these settings."""
    checks = open_authenticator(http, Secrets())
    assert checks
    try:
        with anyio.fail_after(PATIENCE):
            yield checks
    finally:
        await checks.aclose()


class Wound:
    """A clock that stands still until it is wound on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def away(issuer: LoopbackAuthorizationServer, how: str = "503") -> None:
    issuer.outages["*"] = how


# ---------------------------------------------------------------- in use


async def test_a_token_that_a_client_was_issued_names_its_principal_groups_and_scopes(
    issuer: LoopbackAuthorizationServer, http: Http
):
    grants = ("client_credentials",)
    issuer.add_client("robot", secret="s3cret", auth_method="client_secret_basic", grants=grants)
    issuer.book.told["robot"] = {"groups": ["night", "robots"], "name": "The robot"}
    form = {"grant_type": "client_credentials", "scope": "admin", "resource": OURS}
    async with httpx2.AsyncClient() as client, opened(http) as checks:
        answer = await client.post(f"{issuer.origin}/token", data=form, auth=("robot", "s3cret"))
        found = await checks.identify(answer.json()["access_token"])
    assert found == Identity(
        f"{issuer.origin}|robot", "The robot", frozenset({"run", "admin"}), frozenset({"night", "robots"})
    )
    assert (issuer.counts[METADATA], issuer.counts["/jwks"], issuer.counts["/introspect"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        ({"scope": "run"}, {"run"}),
        ({"scope": "openid run read"}, {"run"}),
        ({"scope": "admin"}, {"run", "admin"}),
        ({"scope": None, "scp": ["run", "read"]}, {"run"}),
        ({"scope": None, "scp": "run admin"}, {"run", "admin"}),
        ({"scope": "run", "scp": ["admin"]}, {"run"}),
    ],
)
async def test_scopes_are_read_as_vendors_write_them(
    standing: LoopbackAuthorizationServer, scopes: dict[str, Any], allowed: set[str]
):
    forge = forge_of(standing)
    async with opened(accepting(standing)) as checks:
        assert (await checks.identify(forge.token(**scopes))).scopes == allowed


async def test_keys_of_all_kinds_and_all_types_of_access_tokens_are_known(http: Http, forge: Forge):
    for kind in ("RSA", "EC", "OKP"):
        forge.keys.add(f"new-{kind}", kind)
        for typ in ("at+jwt", "application/at+jwt", "JWT", "jwt"):
            async with opened(http) as checks:
                assert (await checks.identify(forge.token({"typ": typ}))).name == "ann", (kind, typ)


@pytest.mark.parametrize("skew", [-30, 30])
async def test_clocks_may_be_half_a_minute_apart(http: Http, forge: Forge, skew: int):
    now = int(time.time()) + skew
    async with opened(http) as checks:
        assert await checks.identify(forge.token(iat=now, nbf=now, exp=now + 1))


async def test_a_list_of_audiences_may_name_others_beside_ours(http: Http, forge: Forge):
    async with opened(http) as checks:
        assert await checks.identify(forge.token(aud=["account", OURS]))


async def test_without_oauth_settings_or_tokens_there_is_nothing_that_checks(http: Http):
    assert open_authenticator(Http(), Secrets()) is None


async def test_tokens_of_ours_are_never_shown_to_the_authorization_server(
    issuer: LoopbackAuthorizationServer, http: Http
):
    endpoint = {"url": f"{issuer.origin}/introspect", "client_id": "x"}
    oauth = AccessTokens.model_validate({"issuer": issuer.origin, "introspection": endpoint})
    async with opened(http.model_copy(update={"oauth": oauth})) as checks:
        for token in ("otk_unknown", "otk_a.b.c"):
            with pytest.raises(TokenRefused, match="unknown"):
                await checks.identify(token)
    assert not issuer.received


# ---------------------------------------------------------------- forged


def test_there_are_enough_attacks():
    assert len(ATTACKS) >= 25


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
async def test_a_forged_token_is_refused_and_a_good_one_passes_after_it(
    standing: LoopbackAuthorizationServer, attack: Callable[[Forge], str]
):
    forge = forge_of(standing)
    before = standing.counts["/jwks"]
    async with opened(accepting(standing)) as checks:
        with pytest.raises(TokenRefused):
            await checks.identify(attack(forge))
        assert (await checks.identify(forge.token())).name == "ann"
    assert standing.counts["/jwks"] == before + 1, "no forged token makes the server fetch keys again and again"


async def test_a_flood_of_unknown_keys_and_a_hundred_at_once_cause_one_fetch(
    issuer: LoopbackAuthorizationServer, http: Http, forge: Forge
):
    async with opened(http) as checks:
        forged = [forge.token({"kid": f"forged{number}"}) for number in range(100)]
        found = await asyncio.gather(*map(checks.identify, forged), return_exceptions=True)
        assert {type(one) for one in found} == {TokenRefused}
        assert await checks.identify(forge.token())
    assert issuer.counts["/jwks"] == 1


@given(st.text(max_size=200) | st.from_regex(r"[\w-]{1,30}\.[\w-]{1,30}\.[\w-]{1,30}", fullmatch=True))
async def test_whatever_is_sent_is_refused_and_nothing_else_happens(text: str):
    async def never() -> dict[str, object]:
        raise AssertionError("no key is sought for it")

    oauth = AccessTokens(issuer="https://idp.example.com")
    checks = TokenChecks(StaticTokens({}), JwtTokens(oauth, OURS, IssuerKeys(never)))
    with pytest.raises(TokenRefused):
        await checks.identify(text)


IDS = st.lists(st.sampled_from(["a", "|", "%", "%7C", "%25", "7C", "\\", "/", " "]), max_size=6).map("".join)


@given(IDS, IDS)
def test_issuer_and_subject_can_be_read_from_a_principal_so_no_two_pairs_are_one(issuer: str, subject: str):
    assert [unquote(part) for part in principal_of(issuer, subject).split("|")] == [issuer, subject]


def test_a_subject_cannot_pass_for_a_named_token():
    assert principal_of("https://idp.example.com", "token|ci") != "token|ci"
    assert principal_of("https://idp.example.com", "x").startswith("https://")


# ---------------------------------------------------------------- while it is away


@pytest.mark.parametrize("how", ["503", "429", "hang", "mute"])
async def test_known_keys_work_while_the_authorization_server_is_away(
    issuer: LoopbackAuthorizationServer, forge: Forge, how: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onetool_team.auth.issuer_documents.SECONDS", 0.3)
    clock, client = Wound(), open_client(AddressRule((issuer.origin,)))
    keys = IssuerKeys(lambda: fetch_json(client, f"{issuer.origin}/jwks"), clock=clock)
    checks = JwtTokens(AccessTokens(issuer=issuer.origin), OURS, keys)
    assert await checks.identify(forge.token())
    away(issuer, how)
    clock.now = FRESH_SECONDS + 1
    assert await checks.identify(forge.token()), "stale keys are used while new ones are fetched"
    clock.now = KEPT_SECONDS - 1
    assert await checks.identify(forge.token())
    clock.now = KEPT_SECONDS + 1
    with pytest.raises(TokensUncheckable):
        await checks.identify(forge.token())
    assert issuer.counts["/jwks"] >= 2, "it was asked in between"
    await checks.aclose()
    await client.aclose()


@pytest.mark.parametrize("how", ["503", "429"])
async def test_with_no_key_known_nothing_is_said_about_a_token_until_the_server_is_back(
    issuer: LoopbackAuthorizationServer, http: Http, forge: Forge, how: str, monkeypatch: pytest.MonkeyPatch
):
    away(issuer, how)
    async with opened(http) as checks:
        with pytest.raises(TokensUncheckable):
            await checks.identify(forge.token())
        asked = issuer.counts[METADATA]
        with pytest.raises(TokensUncheckable):
            await checks.identify(forge.token())
        assert issuer.counts[METADATA] == asked, "it is left alone for a moment"
        issuer.outages.clear()
        monkeypatch.setattr("onetool_team.auth.issuer_keys.FIRST_SECONDS", 0.0)
        assert await checks.identify(forge.token())


async def test_an_unknown_key_is_uncheckable_while_the_server_is_away_and_known_ones_work(
    issuer: LoopbackAuthorizationServer, http: Http, forge: Forge, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onetool_team.auth.issuer_keys.RETRY_SECONDS", 0.0)
    async with opened(http) as checks:
        good = forge.token()
        assert await checks.identify(good)
        forge.keys.add("second")
        await asyncio.to_thread(issuer.stop)
        with pytest.raises(TokensUncheckable):
            await checks.identify(forge.token())
        assert await checks.identify(good)
        await asyncio.to_thread(issuer.start)
        assert await checks.identify(forge.token())


async def test_a_new_key_is_fetched_when_a_token_names_it_and_a_withdrawn_one_is_refused(
    http: Http, forge: Forge, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onetool_team.auth.issuer_keys.RETRY_SECONDS", 0.0)
    async with opened(http) as checks:
        old = forge.token()
        assert await checks.identify(old)
        forge.keys.add("second")
        assert await checks.identify(forge.token())
        del forge.keys.keys[0]
        forge.keys.add("third")
        assert await checks.identify(forge.token())
        with pytest.raises(TokenRefused, match="unknown key"):
            await checks.identify(old)


async def test_keys_are_fetched_again_in_the_background_and_at_most_once_in_a_while(forge: Forge):
    clock, fetched, release = Wound(), 0, asyncio.Event()

    async def fetch() -> dict[str, object]:
        nonlocal fetched
        fetched += 1
        if fetched > 1:
            await release.wait()
        return {**forge.keys.published()}

    keys = IssuerKeys(fetch, clock=clock)
    assert await keys.find("first", "RS256")
    clock.now = FRESH_SECONDS + 1
    for _ in range(10):
        assert await keys.find("first", "RS256"), "nobody waits for the fetch"
    waiting = asyncio.create_task(keys.find("second", "ES256"))
    await asyncio.sleep(0)
    forge.keys.add("second")
    release.set()
    assert (await waiting).kid == "second"
    assert fetched == 2
    for step in range(20):
        clock.now += RETRY_SECONDS / 4
        with pytest.raises(TokenRefused):
            await keys.find(f"forged{step}", "RS256")
    assert fetched <= 2 + 20 / 4
    await keys.aclose()


async def test_one_who_gives_up_does_not_end_the_fetch_for_the_others(forge: Forge):
    release = asyncio.Event()

    async def fetch() -> dict[str, object]:
        await release.wait()
        return {**forge.keys.published()}

    keys = IssuerKeys(fetch)
    first, second = (asyncio.create_task(keys.find("first", "RS256")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first,))
    release.set()
    assert (await second).kid == "first"


async def test_what_was_good_is_not_good_past_its_expiry_or_without_its_key(forge: Forge):
    now, clock = time.time(), Wound()

    async def fetch() -> dict[str, object]:
        return {**forge.keys.published()}

    oauth = AccessTokens(issuer=forge.issuer, leeway_seconds=10)
    checks = JwtTokens(oauth, OURS, IssuerKeys(fetch, clock=clock), clock=lambda: now)
    short, long = forge.token(exp=int(now) + 5), forge.token()
    for _ in range(2):
        assert await checks.identify(short) and await checks.identify(long)
    now += 5 + 10 + 1
    with pytest.raises(TokenRefused, match="expired"):
        await checks.identify(short)
    assert await checks.identify(long)
    other = RSAKey.import_key({**rsa_key("thief").as_dict(private=True), "kid": "first"})
    forge.keys.keys[:] = [other, forge.keys.add("second")]
    clock.now = FRESH_SECONDS + 1
    assert await checks.identify(long), "the new keys are fetched meanwhile"
    assert await checks.identify(forge.token()), "and are there now"
    with pytest.raises(TokenRefused, match="signature is wrong"):
        await checks.identify(long)  # its key's name is another key's now


async def test_a_good_token_that_comes_again_is_checked_once(forge: Forge, monkeypatch: pytest.MonkeyPatch):
    async def fetch() -> dict[str, object]:
        return {**forge.keys.published()}

    checked: list[object] = []

    def counted(signed: Any, *given: Any, **more: Any) -> bool:
        checked.append(signed)
        return validate_compact(signed, *given, **more)

    monkeypatch.setattr("onetool_team.auth.jwt_tokens.validate_compact", counted)
    checks = JwtTokens(AccessTokens(issuer=forge.issuer), OURS, IssuerKeys(fetch))
    token = forge.token()
    assert {(await checks.identify(token)).name for _ in range(20)} == {"ann"}
    assert len(checked) == 1


def test_no_more_answers_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onetool_team.kept_answers.MAX_KEPT", 3)
    kept = KeptAnswers[int](lambda: 0.0)
    for number in range(10):
        kept.put(digest_of(str(number)), number, 1.0)
    assert (len(kept), kept.get(digest_of("9")), kept.get(digest_of("0"))) == (3, 9, None)


# ---------------------------------------------------------------- what the authorization server publishes


@pytest.mark.parametrize(
    ("issuer", "first"),
    [
        ("https://a.example.com", "https://a.example.com/.well-known/oauth-authorization-server"),
        ("https://a.example.com/", "https://a.example.com/.well-known/oauth-authorization-server"),
        ("https://a.example.com/t/1", "https://a.example.com/.well-known/oauth-authorization-server/t/1"),
    ],
)
def test_metadata_is_sought_where_the_standards_say(issuer: str, first: str):
    assert next(metadata_urls(issuer)) == first
    assert f"{issuer.rstrip('/')}/.well-known/openid-configuration" in metadata_urls(issuer)


async def test_metadata_of_another_issuer_is_not_used(issuer: LoopbackAuthorizationServer, http: Http, forge: Forge):
    issuer.issuing.issuer = "https://evil.example.com"
    async with opened(http) as checks:
        with pytest.raises(TokensUncheckable, match="another issuer"):
            await checks.identify(forge.token())
    assert issuer.counts["/jwks"] == 0


async def test_keys_at_a_configured_address_need_no_metadata(
    issuer: LoopbackAuthorizationServer, http: Http, forge: Forge
):
    oauth = AccessTokens(issuer="https://idp.example.com", jwks_url=f"{issuer.origin}/jwks")
    async with opened(http.model_copy(update={"oauth": oauth})) as checks:
        assert await checks.identify(forge.token(iss="https://idp.example.com"))
    assert issuer.counts[METADATA] == 0


@pytest.mark.parametrize(
    "published",
    [
        {"keys": "none"},
        {"keys": []},
        {"keys": [{"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "first"}]},
        {"keys": [{"kty": "RSA", "kid": "first", "n": "AQAB", "e": "AQAB"}]},
        {"keys": [{"kty": "EC", "kid": "first", "crv": "P-256", "x": "AA", "y": "AA"}, 1, None]},
    ],
)
async def test_keys_that_cannot_be_used_are_none(published: dict[str, object]):
    async def fetch() -> dict[str, object]:
        return published

    with pytest.raises(TokensUncheckable):
        await IssuerKeys(fetch).find("first", "RS256")


async def test_keys_beside_one_that_is_malformed_are_used(forge: Forge):
    async def fetch() -> dict[str, object]:
        return {"keys": [{"kty": "new"}, {"kty": "EC"}, *forge.keys.published()["keys"]]}

    assert (await IssuerKeys(fetch).find("first", "RS256")).kid == "first"


async def test_an_answer_that_is_too_large_is_not_read(issuer: LoopbackAuthorizationServer, http: Http, forge: Forge):
    padded = {**rsa_key("first").as_dict(private=True), "pad": "x" * (1 << 20)}
    forge.keys.keys[:] = [RSAKey.import_key(padded)]
    async with opened(http) as checks:
        with pytest.raises(TokensUncheckable, match="more than"):
            await checks.identify(forge.token())


def test_an_issuer_is_reached_over_https_alone():
    for issuer in ("http://idp.example.com", "https://idp.example.com?x=1", "ftp://idp.example.com"):
        with pytest.raises(ValueError, match="is not an"):
            AccessTokens(issuer=issuer)
    assert AccessTokens(issuer="http://127.0.0.1:9000").leeway_seconds == LEEWAY


async def test_the_issuers_metadata_name_no_internal_address_that_the_operator_did_not_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def metadata(client: object, url: str) -> dict[str, str]:
        asked.append(url)
        return {"issuer": "https://issuer.example", "jwks_uri": "https://127.0.0.2:9/keys"}

    monkeypatch.setattr("onetool_team.auth.issuer_documents.fetch_json", metadata)
    client = open_client(AddressRule(("https://issuer.example",)))
    keys = await discover_keys(client, "https://issuer.example")
    with pytest.raises(TokensUncheckable, match=r"127\.0\.0\.2 has the internal address"):
        await fetch_json(client, keys)
    await client.aclose()
    assert len(asked) == 1
