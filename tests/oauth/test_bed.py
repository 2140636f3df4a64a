"""The servers that the tests of logins stand on, played through with the protocol library's own provider."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from joserfc.jwk import ECKey
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from oauth.authorization_server import METADATA, LoopbackAuthorizationServer
from oauth.browserless_user import BrowserlessUser, query_of
from oauth.resource_server import LoopbackResourceServer

pytestmark = pytest.mark.anyio

CALLBACK = "http://127.0.0.1:9/callback"
"""Nobody listens there: the user tells where the redirect leads."""
DOCUMENT = "https://client.example/oauth/client.json"


class Kept:
    """Tokens and a client in memory, as the library's provider wants them."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def stock_provider(url: str, kept: Kept, user: BrowserlessUser, document: str | None = None) -> OAuthClientProvider:
    """Return the library's provider with a user who agrees at once."""
    found: list[str] = []

    async def redirect(address: str) -> None:
        found.append(await user.redirected_to(address))

    async def callback() -> AuthorizationCodeResult:
        answer = query_of(found.pop())
        return AuthorizationCodeResult(code=answer.get("code", ""), state=answer.get("state"), iss=answer.get("iss"))

    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(CALLBACK)], token_endpoint_auth_method="none")
    return OAuthClientProvider(url, metadata, kept, redirect, callback, client_metadata_url=document)


async def called(url: str, auth: httpx2.Auth, tool: str = "echo", **arguments: Any) -> Any:
    """Return the value of one call over a connection of its own."""
    async with Client(StreamableHttpTransport(url, auth=auth)) as client:
        return (await client.call_tool(tool, arguments or {"text": "hello"})).data


async def refresh(issuer: LoopbackAuthorizationServer, kept: Kept, token: str) -> httpx2.Response:
    """Return what the token endpoint says to a refresh token."""
    assert kept.client is not None
    form: Mapping[str, str] = {
        "grant_type": "refresh_token",
        "refresh_token": token,
        "client_id": kept.client.client_id,
    }
    async with httpx2.AsyncClient() as client:
        return await client.post(f"{issuer.origin}/token", data=dict(form))


async def test_a_login_a_call_a_refresh_and_the_alarm_when_a_rotated_token_comes_back(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    kept = Kept()
    assert await called(resource.url, stock_provider(resource.url, kept, BrowserlessUser())) == "hello"
    assert (issuer.counts["registrations"], issuer.counts["logins"], resource.calls["echo"]) == (1, 1, 1)

    assert kept.tokens and kept.tokens.refresh_token
    first = kept.tokens.refresh_token
    second = (await refresh(issuer, kept, first)).json()
    assert second["refresh_token"] != first and issuer.counts["refreshes"] == 1

    reused = await refresh(issuer, kept, first)
    assert (reused.status_code, reused.json()["error"], issuer.counts["alarms"]) == (400, "invalid_grant", 1)
    assert (await refresh(issuer, kept, second["refresh_token"])).status_code == 400, "the family is revoked"
    assert not any(token.active for token in issuer.book.tokens)


async def test_a_tool_that_needs_more_scope_is_refused_until_the_user_agrees_to_it(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    kept = Kept()
    auth = stock_provider(resource.url, kept, BrowserlessUser())
    assert await called(resource.url, auth, "store", text="tea") == "stored tea"
    assert (resource.refused[403], issuer.counts["logins"], resource.calls["store"]) == (1, 2, 1)
    assert kept.tokens and kept.tokens.scope and "write" in kept.tokens.scope.split()


async def test_introspection_tells_the_resource_server_which_tokens_are_good(issuer: LoopbackAuthorizationServer):
    with LoopbackResourceServer(issuer, introspects=True) as resource:
        assert await called(resource.url, stock_provider(resource.url, Kept(), BrowserlessUser())) == "hello"
    assert issuer.counts["/introspect"] > 0


async def test_a_metadata_document_takes_the_place_of_registration(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    issuer.issuing.dynamic_registration = False
    issuer.issuing.documents = {DOCUMENT: {"client_id": DOCUMENT, "redirect_uris": [CALLBACK]}}
    auth = stock_provider(resource.url, Kept(), BrowserlessUser(), DOCUMENT)
    assert await called(resource.url, auth) == "hello"
    assert issuer.counts["registrations"] == 0


async def test_machines_get_tokens_by_a_secret_and_by_a_signed_assertion(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    key = ECKey.generate_key("P-256")
    issuer.add_client("robot", secret="s3cret", auth_method="client_secret_basic", grants=("client_credentials",))
    issuer.add_client("signer", public_key=key, auth_method="private_key_jwt", grants=("client_credentials",))
    signed = SignedJWTParameters(
        issuer="signer", subject="signer", signing_algorithm="ES256", signing_key=key.as_pem(private=True).decode()
    )
    signs, at = signed.create_assertion_provider(), issuer.origin
    for auth in (
        ClientCredentialsOAuthProvider(resource.url, Kept(), "robot", "s3cret", scope="read", issuer=at),
        PrivateKeyJWTOAuthProvider(resource.url, Kept(), "signer", signs, scope="read", issuer=at),
    ):
        assert await called(resource.url, auth) == "hello"
    assert issuer.counts["client_credentials"] == 2


async def test_outages_are_switched_on_and_off(issuer: LoopbackAuthorizationServer):
    async with httpx2.AsyncClient(timeout=httpx2.Timeout(5, read=0.2)) as client:
        for outage in ("503", "429"):
            issuer.outages["*"] = outage
            assert (await client.get(issuer.origin + METADATA)).status_code == int(outage)
        for outage in ("hang", "mute"):
            issuer.outages["*"] = outage
            with pytest.raises(httpx2.ReadTimeout):
                await client.get(issuer.origin + METADATA)
    issuer.outages.clear()
    await asyncio.to_thread(issuer.stop)
    async with httpx2.AsyncClient() as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get(issuer.origin + METADATA)
        await asyncio.to_thread(issuer.start)
        assert (await client.get(issuer.origin + METADATA)).json()["issuer"] == issuer.origin


async def test_an_expired_and_a_revoked_token_are_refused_and_a_user_can_say_no(
    issuer: LoopbackAuthorizationServer, resource: LoopbackResourceServer
):
    kept = Kept()
    await called(resource.url, stock_provider(resource.url, kept, BrowserlessUser()))
    assert kept.tokens
    headers = {"authorization": f"Bearer {kept.tokens.access_token}"}
    issuer.book.forget_access()
    async with httpx2.AsyncClient(headers=headers) as client:
        assert (await client.post(resource.url, json={})).status_code == 401
    with pytest.raises(Exception, match="authorization code"):
        await called(resource.url, stock_provider(resource.url, Kept(), BrowserlessUser("")))
