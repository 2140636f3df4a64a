"""A server process that knows people by tokens: a client that logs in by itself, outages, and what nobody may do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from http_server import CONFIG, HttpServer, call, text_of
from oauth.authorization_server import LoopbackAuthorizationServer
from oauth.browserless_user import BrowserlessUser
from oauth.signing_keys import SigningKeys
from oauth.test_bed import Kept, called, stock_provider
from onetool_team.auth.static_tokens import new_token, token_hash
from ot.proxied.auth.challenge import challenge_fields
from pace import PATIENCE, patiently
from team.auth.forged_tokens import ATTACKS, forge_of

pytestmark = pytest.mark.anyio

ROBOT = new_token()
SETTINGS = """
http:
  workspaces: {{each: {each}}}
  tokens:
    robot: {{hash: "{hash}", scopes: [admin], groups: [keepers]}}
  oauth: {{issuer: "{issuer}"}}
policy:
  deny: ["file.*"]
  groups:
    keepers: {{allow: ["file.list"]}}
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoopbackAuthorizationServer]:
    with LoopbackAuthorizationServer() as server:
        server.issuing.signing = SigningKeys()
        yield server


@pytest.fixture(scope="module")
def server(issuer: LoopbackAuthorizationServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    root = tmp_path_factory.mktemp("tokens")
    (root / "people").mkdir()
    settings = SETTINGS.format(each=root / "people", hash=token_hash(ROBOT), issuer=issuer.origin)
    with HttpServer.start(root, CONFIG + settings) as started:
        yield started


def token_of(issuer: LoopbackAuthorizationServer, server: HttpServer, **claims: Any) -> str:
    return forge_of(issuer).token(aud=server.url, **claims)


def wait_for_keys(server: HttpServer, issuer: LoopbackAuthorizationServer) -> None:
    """Return once the server has fetched keys: after an outage it tries again in a moment."""
    for _ in patiently():
        if server.run("1", token=token_of(issuer, server)).status_code == 200:
            return
    raise AssertionError(server.stderr_text())


async def test_before_any_key_is_known_an_outage_is_503_and_not_a_refusal(
    server: HttpServer, issuer: LoopbackAuthorizationServer
):
    issuer.outages["*"] = "503"
    answer = server.run("1", token=token_of(issuer, server))
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    issuer.outages.clear()
    assert (server.run("1", token=ROBOT).status_code) == 200, "who has a token of ours needs no one else"
    await asyncio.to_thread(wait_for_keys, server, issuer)


async def test_a_client_logs_in_by_itself_as_the_challenge_tells_it(
    server: HttpServer, issuer: LoopbackAuthorizationServer
):
    kept = Kept()
    provider = stock_provider(server.url, kept, BrowserlessUser("ann"))
    found = await called(server.url, provider, "run", command="ot.health()['policy'].get('groups')")
    assert found is None and kept.tokens and "run" in str(kept.tokens.scope).split()
    assert issuer.counts["logins"] == 1


async def test_known_keys_and_clocks_half_a_minute_apart_are_no_401(
    server: HttpServer, issuer: LoopbackAuthorizationServer
):
    assert server.run("1", token=token_of(issuer, server)).status_code == 200
    issuer.outages["*"] = "503"
    try:
        for skew in (-30, 30):
            now = int(time.time()) + skew
            answer = server.run("1 + 1", token=token_of(issuer, server, iat=now, nbf=now, exp=now + 1))
            assert (answer.status_code, text_of(answer)) == (200, "2")
    finally:
        issuer.outages.clear()


async def test_no_forged_token_passes_the_edge(server: HttpServer, issuer: LoopbackAuthorizationServer):
    forge, passed = forge_of(issuer), dict[str, int]()
    async with server.client() as client:
        for name, attack in ATTACKS.items():
            # What no header can hold does not get as far as this.
            shown = attack(forge).encode("utf-8", "replace").replace(b"\n", b" ").decode("latin-1")[: 60 << 10]
            try:
                answer = await client.post(server.url, json=call("1"), headers=server.headers(token=shown or " "))
            except httpx2.HTTPError:
                continue  # cut off: it is too large
            if answer.status_code not in (400, 401, 403, 431):
                passed[name] = answer.status_code
    assert passed == {}
    assert server.run("1", token=token_of(issuer, server)).status_code == 200


async def test_a_refusal_says_what_is_wrong_and_where_tokens_are_had(
    server: HttpServer, issuer: LoopbackAuthorizationServer
):
    answer = server.run("1", token=token_of(issuer, server, exp=1))
    fields = challenge_fields(answer.headers)
    assert (answer.status_code, fields["error"]) == (401, "invalid_token")
    assert fields["error_description"] == "the token has expired"
    document = httpx2.get(fields["resource_metadata"], timeout=PATIENCE).json()
    assert (document["resource"], document["authorization_servers"]) == (server.url, [issuer.origin])
    lacking = server.run("1", token=token_of(issuer, server, scope="read"))
    assert (lacking.status_code, challenge_fields(lacking.headers)["error"]) == (403, "insufficient_scope")


async def test_a_token_in_the_address_or_the_body_is_no_token(server: HttpServer, issuer: LoopbackAuthorizationServer):
    good = token_of(issuer, server)
    headers = {name: value for name, value in server.headers(token=good).items() if name != "authorization"}
    for url in (f"{server.url}?access_token={good}", f"{server.url}?token={good}"):
        assert httpx2.post(url, headers=headers, json={"access_token": good}, timeout=PATIENCE).status_code == 401
    cookie = {**headers, "cookie": f"access_token={good}"}
    assert httpx2.post(server.url, headers=cookie, json={}, timeout=PATIENCE).status_code == 401
    assert server.run("1", token=good).status_code == 200


async def test_groups_and_scopes_come_from_the_token(server: HttpServer, issuer: LoopbackAuthorizationServer):
    plain, keeper = token_of(issuer, server), token_of(issuer, server, sub="kim", groups=["keepers", "unknown"])
    assert "denied by the policy (policy.deny: 'file.*')" in text_of(server.run("file.list()", token=plain))
    for token in (keeper, ROBOT):
        assert "denied" not in text_of(server.run("file.list()", token=token))
    assert "administrators" in text_of(server.run("ot.reload()", token=keeper))
    assert "OK" in text_of(server.run("ot.reload()", token=ROBOT))


def test_no_token_is_in_the_log_or_in_any_file(server: HttpServer, issuer: LoopbackAuthorizationServer):
    shown = token_of(issuer, server)
    for secret in (shown, ROBOT):
        assert "Error" in text_of(server.run(f"ot.result(handle='{secret}')", token=ROBOT))
        assert "Error" in text_of(server.run(f"file.list(path='{secret}')", token=shown))
    for texts in (logs_of(server) for _ in patiently()):
        assert not [text for text in texts if shown in text or ROBOT in text]
        if all(text.count("[secret:token]") >= 4 for text in texts):
            break
    else:
        raise AssertionError(logs_of(server))


def logs_of(server: HttpServer) -> list[str]:
    """Return what the server has logged so far, on standard error and in its file."""
    (file,) = server.place.home.rglob("*.log")
    return [server.stderr_text(), file.read_text(errors="replace")]
