"""Opens what tells who shows a token, as the operator configured it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from ot.config.expand import fill_in
from ot.config.secrets import Secrets
from ot.config.team_settings import AccessTokens, Http
from ot.errors import ConfigError
from ot.team.auth.resource_metadata import resource_url
from ot.team.auth.static_tokens import StaticTokens, is_static
from ot.team.identity import Authenticator, Identity, TokenRefused

MAX_TOKEN = 16 << 10
"""Real ones have one to four thousand characters."""
NO_EXTRA = "http.oauth needs further packages: install onetool-run[team]"


def open_authenticator(
    http: Http,
    secrets: Secrets,
    address: str = "",
    named: Authenticator | None = None,
    internal_hosts: tuple[str, ...] = (),
) -> Authenticator | None:
    """Return what checks tokens, or nothing where nobody is configured; *address* stands in for ``public_url``.

    Tokens of ours are checked by *named*, or else by what *http* says of them. What the authorization server names
    may be at *internal_hosts* and at no other internal address.

    Raises:
        ConfigError: The settings cannot be used.
    """
    if not http.tokens and http.oauth is None:
        return None
    others = _open_oauth(http, http.oauth, secrets, address, internal_hosts) if http.oauth else None
    return TokenChecks(named or StaticTokens(http.tokens), others)


class TokenChecks:
    """Asks whoever a token is of, and nobody else."""

    def __init__(self, named: Authenticator, others: Authenticator | None = None) -> None:
        """Have tokens of ours checked by *named*, and the *others* with an authorization server."""
        self._named = named
        self._others = others

    async def identify(self, token: str) -> Identity:
        """Return who showed *token*; see ``Authenticator``."""
        if not token or len(token) > MAX_TOKEN or not token.isascii() or not token.isprintable():
            raise TokenRefused("the token is malformed")
        if is_static(token) or self._others is None:
            return await self._named.identify(token)
        return await self._others.identify(token)

    async def aclose(self) -> None:
        """Let go of connections."""
        if self._others:
            await self._others.aclose()


class OAuthTokens:
    """Tells signed tokens from others, of which only the authorization server knows what they are."""

    def __init__(
        self, signed: Authenticator, others: Authenticator | None, close: Callable[[], Awaitable[None]]
    ) -> None:
        """Check JWTs by *signed*, other tokens by *others*; *close* ends what both use."""
        self._signed = signed
        self._others = others
        self._close = close

    async def identify(self, token: str) -> Identity:
        """Return who showed *token*; see ``Authenticator``."""
        if self._others is None or token.count(".") == 2:
            return await self._signed.identify(token)
        return await self._others.identify(token)

    async def aclose(self) -> None:
        """Let go of connections."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            stack.push_async_callback(self._signed.aclose)
            if self._others:
                stack.push_async_callback(self._others.aclose)


def _open_oauth(
    http: Http, oauth: AccessTokens, secrets: Secrets, address: str, internal_hosts: tuple[str, ...]
) -> Authenticator:
    audience = oauth.audience or resource_url(http, address)
    if not audience:
        raise ConfigError("http.oauth needs http.public_url: tokens must be for this server")
    try:
        from ot.servers.internal_addresses import AddressRule  # noqa: PLC0415 - as below
        from ot.team.auth.introspection import IntrospectedTokens  # noqa: PLC0415 - as below
        from ot.team.auth.issuer_documents import discover_keys, fetch_json, open_client  # noqa: PLC0415 - as below
        from ot.team.auth.issuer_keys import IssuerKeys  # noqa: PLC0415 - as below
        from ot.team.auth.jwt_tokens import JwtTokens  # noqa: PLC0415 - libraries of an extra
    except ImportError as error:
        raise ConfigError(f"{NO_EXTRA} ({error})") from None
    written = [oauth.issuer, oauth.jwks_url, oauth.introspection.url if oauth.introspection else ""]
    client = open_client(AddressRule(tuple(filter(None, written)), internal_hosts))

    async def fetch() -> Mapping[str, Any]:
        return await fetch_json(client, oauth.jwks_url or await discover_keys(client, oauth.issuer))

    signed = JwtTokens(oauth, audience, IssuerKeys(fetch))
    if not (endpoint := oauth.introspection):
        return OAuthTokens(signed, None, client.aclose)
    secret = fill_in(endpoint.client_secret, "http.oauth.introspection.client_secret", secrets.get)
    endpoint = endpoint.model_copy(update={"client_secret": secret})
    return OAuthTokens(signed, IntrospectedTokens(oauth, endpoint, audience, client), client.aclose)
