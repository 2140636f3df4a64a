"""Drives the flow of one of the protocol library's providers by hand, from a refused request to the tokens."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_types.version import LATEST_PROTOCOL_VERSION

from ot.errors import AuthServerDown, LoginFailed, ServerUnavailable
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.challenge import challenge_fields
from ot.proxied.auth.refresh import expiry
from ot.proxied.auth.token_record import ClientAuth, TokenRecord
from ot.proxied.guarded_client import GuardedClient, ask
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.reply_faults import Refused

SECONDS = 15.0
MAX_STEPS = 30
MAX_WORDS = 300
PAGES = {
    "githubcopilot.com": "at https://github.com/settings/developers (or use a personal access token in a header)",
    "github.com": "at https://github.com/settings/developers (or use a personal access token in a header)",
    "slack.com": "at https://api.slack.com/apps",
}
"""Where some vendors let their users register an OAuth app, since their servers register none by themselves."""


@dataclass
class TokensInHand:
    """What the library's provider reads and keeps: a client that was registered before, and the tokens that come."""

    client: OAuthClientInformationFull | None = None
    tokens: OAuthToken | None = field(default=None, repr=False)

    async def get_tokens(self) -> OAuthToken | None:
        """Return none: a login begins anew."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take the tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take the client that was registered."""
        self.client = client_info


async def drive(account: ServerAccount, provider: OAuthClientProvider, held: TokensInHand, scope: str) -> TokenRecord:
    """Return the record of the tokens that *provider* obtains for the *scope*; nothing is kept.

    Raises:
        LoginFailed: It came to no tokens.
        AuthServerDown: The authorization server does not answer.
        ServerUnavailable: The server itself does not answer.
    """
    # It logs a traceback of what it raises: that is told once, in a sentence, and without what a server wrote.
    logging.getLogger("mcp.client.auth").setLevel(logging.CRITICAL)
    request = _first_request(account)
    flow = provider.async_auth_flow(request)
    async with GuardedClient(AddressRule(*account.rule), timeout=SECONDS, follow_redirects=False) as client:
        try:
            outgoing = await anext(flow)
            answer = await _request_refusal(account, client, outgoing, scope)
            for _ in range(MAX_STEPS):
                outgoing = await flow.asend(answer)
                if held.tokens is not None:
                    return _record(account, provider, held.tokens)
                check_authorization_server(account, provider, outgoing)
                answer = await _answer(account, client, outgoing)
        except (OAuthFlowError, Refused) as error:
            raise LoginFailed(account.server, str(error)[:MAX_WORDS]) from None
        except StopAsyncIteration:
            pass
        finally:
            await flow.aclose()
    raise LoginFailed(account.server, "it ended without tokens")


def _first_request(account: ServerAccount) -> httpx2.Request:
    """Return a question that does nothing, which a server that wants a login refuses."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": LATEST_PROTOCOL_VERSION}
    return httpx2.Request("POST", account.url, json={"jsonrpc": "2.0", "id": 0, "method": "ping"}, headers=headers)


async def _request_refusal(
    account: ServerAccount, client: httpx2.AsyncClient, request: httpx2.Request, scope: str
) -> httpx2.Response:
    """Return a refusal that asks for *scope*, where it is given, and says what the server's own refusal says."""
    try:
        answer = await ask(client, request)
    except httpx2.HTTPError as error:
        raise ServerUnavailable(account.server, f"no answer: {error or type(error).__name__}") from None
    if answer.status_code >= 500 or answer.status_code == 429:
        raise ServerUnavailable(account.server, f"it answered HTTP {answer.status_code}")
    said = challenge_fields(answer.headers) if answer.status_code in (401, 403) else {}
    wanted = {"resource_metadata": said.get("resource_metadata", ""), "scope": scope or said.get("scope", "")}
    fields = ", ".join(f'{name}="{text}"' for name, text in wanted.items() if text)
    # Some servers let everybody in and refuse only some tools: who asks for a login gets one there, too.
    return httpx2.Response(401, headers={"WWW-Authenticate": f"Bearer {fields}"}, request=request)


async def _answer(account: ServerAccount, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    try:
        answer = await ask(client, request)
    except httpx2.HTTPError as error:
        words = str(error) or type(error).__name__
        raise AuthServerDown(account.server, f"no answer from {request.url.host}: {words}") from None
    if answer.status_code >= 500 or answer.status_code == 429:
        raise AuthServerDown(account.server, f"{request.url.host} answered HTTP {answer.status_code}")
    return answer


def check_authorization_server(account: ServerAccount, provider: OAuthClientProvider, outgoing: httpx2.Request) -> None:
    """Return if the login may go on with *outgoing*, as far as the authorization server's metadata are known.

    Raises:
        LoginFailed: It is not the one of the settings, does not bind codes to who asked, or registers no client.
    """
    context = provider.context
    if (metadata := context.oauth_metadata) is None:
        return
    if account.issuer and str(metadata.issuer).rstrip("/") != account.issuer.rstrip("/"):
        why = f"it sends logins to {metadata.issuer}, but servers.{account.server}.auth.issuer is {account.issuer}"
        raise LoginFailed(account.server, why)
    # MCP asks for it of both kinds of metadata, though those of OpenID Connect do not define the field.
    announced = metadata.code_challenge_methods_supported
    known = announced is None and account.pkce == "assumed"
    if context.redirect_handler and not known and "S256" not in (announced or ()):
        why = (
            f"the metadata of its authorization server, {metadata.issuer}, do not announce PKCE "
            "(code_challenge_methods_supported with S256), without which others could use a stolen code"
        )
        auth = f"servers.{account.server}.auth"
        vouch = f"If its documentation says that it supports PKCE, set {auth}.issuer to it and {auth}.pkce to assumed; "
        advice = "ask whoever runs it to announce it, or use a token in a header"
        raise LoginFailed(account.server, why, vouch + advice if announced is None else advice.capitalize())
    if context.client_info is None and outgoing.method == "POST" and metadata.registration_endpoint is None:
        raise client_id_needed(account, provider)


def where_to_register(url: str, documents: Sequence[str]) -> str:
    """Return where to get a client id for the server at *url*, which may have named *documents* itself."""
    host = urlsplit(url).hostname or ""
    known = [page for domain, page in PAGES.items() if host == domain or host.endswith(f".{domain}")]
    return known[0] if known else f"with the vendor (see {documents[0]})" if documents else "with the vendor"


def client_id_needed(account: ServerAccount, provider: OAuthClientProvider) -> LoginFailed:
    """Return the error that tells how to get a client id."""
    context = provider.context
    documents = [getattr(context.oauth_metadata, "service_documentation", None)]
    documents += [getattr(context.protected_resource_metadata, "resource_documentation", None)]
    page = where_to_register(account.url, [str(found) for found in documents if found])
    advice = (
        f"Register an OAuth app {page}, with the redirect address {account.redirect_uri}, "
        f"and set servers.{account.server}.auth.client_id, and client_secret if you were given one"
    )
    return LoginFailed(account.server, "its authorization server does not register clients by itself", advice)


def _record(account: ServerAccount, provider: OAuthClientProvider, tokens: OAuthToken) -> TokenRecord:
    context, now = provider.context, time.time()
    metadata, client = context.oauth_metadata, context.client_info
    assert client is not None
    origin = httpx2.URL(account.url).join("/token")
    secret = client.client_secret or ""
    method = client.token_endpoint_auth_method if secret else "none"
    with_resource = context.should_include_resource_param(context.protocol_version)
    return TokenRecord(
        access_token=tokens.access_token,
        obtained_at=now,
        expires_at=expiry(now, tokens.expires_in),
        refresh_token=tokens.refresh_token or "",
        scope=tokens.scope or "",
        client_id=client.client_id,
        client_secret=secret,
        client_auth=cast(ClientAuth, method or "client_secret_basic"),
        issuer=str(metadata.issuer) if metadata else "",
        token_endpoint=str(metadata.token_endpoint if metadata else origin),
        revocation_endpoint=str(metadata.revocation_endpoint or "") if metadata else "",
        resource=context.get_resource_url() if with_resource else "",
    )
