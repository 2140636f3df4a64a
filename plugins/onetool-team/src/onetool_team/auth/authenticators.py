"""Opens what tells who shows a token, as the operator configured it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from onetool_team.auth.resource_metadata import resource_url
from onetool_team.auth.static_tokens import StaticTokens, is_static
from onetool_team.identity import Authenticator, Identity, TokenRefused
from onetool_team.settings import AccessTokens, Http
from ot.config.expand import fill_in
from ot.config.secrets import Secrets
from ot.errors import ConfigError

if TYPE_CHECKING:
    from onetool_team.auth.introspection import IntrospectedTokens
    from onetool_team.auth.jwt_tokens import JwtTokens

MAX_TOKEN = 16 << 10
"""Real ones have one to four thousand characters."""


def open_authenticator(
    http: Http,
    secrets: Secrets,
    address: str = "",
    named: Authenticator | None = None,
    internal_hosts: tuple[str, ...] = (),
) -> TokenChecks | None:
    """Return what checks tokens, or nothing where nobody is configured; *address* stands in for ``public_url``.

    Tokens of ours are checked by *named*, or else by what *http* says of them. What the authorization server names
    may be at *internal_hosts* and at no other internal address.

    Raises:
        ConfigError: The settings cannot be used.
    """
    if not http.names_people:
        return None
    named = named or StaticTokens(http.tokens)
    return _open_oauth(named, http, http.oauth, secrets, address, internal_hosts) if http.oauth else TokenChecks(named)


class TokenChecks:
    """Asks whoever a token is of, and nobody else."""

    def __init__(
        self,
        named: Authenticator,
        signed: JwtTokens | None = None,
        others: IntrospectedTokens | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Have tokens of ours checked by *named*, those of an authorization server by *signed* if they are JWTs.

        What other tokens are only that server knows: *others* ask it. *close* ends what both use.
        """
        self._named = named
        self._signed = signed
        self._others = others
        self._close = close

    async def identify(self, token: str) -> Identity:
        """Return who showed *token*; see ``Authenticator``."""
        if not token or len(token) > MAX_TOKEN or not token.isascii() or not token.isprintable():
            raise TokenRefused("the token is malformed")
        if is_static(token) or self._signed is None:
            return await self._named.identify(token)
        if self._others is None or token.count(".") == 2:
            return await self._signed.identify(token)
        return await self._others.identify(token)

    async def aclose(self) -> None:
        """Let go of connections."""
        async with AsyncExitStack() as stack:
            if self._close:
                stack.push_async_callback(self._close)
            for checks in filter(None, (self._signed, self._others)):
                stack.push_async_callback(checks.aclose)


def _open_oauth(
    named: Authenticator,
    http: Http,
    oauth: AccessTokens,
    secrets: Secrets,
    address: str,
    internal_hosts: tuple[str, ...],
) -> TokenChecks:
    audience = oauth.audience or resource_url(http, address)
    if not audience:
        raise ConfigError("http.oauth needs http.public_url: tokens must be for this server")
    from onetool_team.auth.introspection import IntrospectedTokens  # noqa: PLC0415 - as below
    from onetool_team.auth.issuer_documents import discover_keys, fetch_json, open_client  # noqa: PLC0415 - as below
    from onetool_team.auth.issuer_keys import IssuerKeys  # noqa: PLC0415 - as below
    from onetool_team.auth.jwt_tokens import JwtTokens  # noqa: PLC0415 - libraries that only this needs
    from ot.proxied.internal_addresses import AddressRule  # noqa: PLC0415 - as above

    written = [oauth.issuer, oauth.jwks_url, oauth.introspection.url if oauth.introspection else ""]
    client = open_client(AddressRule(tuple(filter(None, written)), internal_hosts))

    async def fetch() -> Mapping[str, Any]:
        return await fetch_json(client, oauth.jwks_url or await discover_keys(client, oauth.issuer))

    signed, introspected = JwtTokens(oauth, audience, IssuerKeys(fetch)), None
    if endpoint := oauth.introspection:
        secret = fill_in(endpoint.client_secret, "http.oauth.introspection.client_secret", secrets.get)
        endpoint = endpoint.model_copy(update={"client_secret": secret})
        introspected = IntrospectedTokens(oauth, endpoint, audience, client)
    return TokenChecks(named, signed, introspected, client.aclose)
