"""Obtains tokens for a client that needs no person: by its secret, or by its private key."""

from __future__ import annotations

import asyncio
from typing import Literal

from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)

from ot.errors import LoginFailed, LoginNeeded
from ot.proxied.auth.account import ServerAccount
from ot.proxied.auth.provider_flow import TokensInHand, drive
from ot.proxied.auth.token_record import TokenRecord

METHODS: tuple[Literal["client_secret_basic", "client_secret_post"], ...] = (
    "client_secret_basic",
    "client_secret_post",
)
"""How a secret may be sent; a server that takes only the second says that the client is invalid."""


def obtain(account: ServerAccount) -> TokenRecord:
    """Return a new record; it blocks, and needs a thread without an event loop.

    Raises:
        LoginNeeded: The authorization server refuses the client: its settings have to be changed.
        AuthServerDown: The authorization server does not answer.
    """
    try:
        return asyncio.run(_obtain(account))
    except LoginFailed as error:
        why = f"{error.why}; check servers.{account.server}.auth"
        raise LoginNeeded(account.server, why) from None


async def _obtain(account: ServerAccount) -> TokenRecord:
    if account.private_key:
        return await _drive(account, _by_key(account))
    for method in METHODS[:-1]:
        try:
            return await _drive(account, _by_secret(account, method))
        except LoginFailed as error:
            if "invalid_client" not in error.why:
                raise
    return await _drive(account, _by_secret(account, METHODS[-1]))


async def _drive(account: ServerAccount, provider: tuple[OAuthClientProvider, TokensInHand]) -> TokenRecord:
    return await drive(account, *provider, " ".join(account.scopes))


def _by_secret(
    account: ServerAccount, method: Literal["client_secret_basic", "client_secret_post"]
) -> tuple[OAuthClientProvider, TokensInHand]:
    held = TokensInHand()
    provider = ClientCredentialsOAuthProvider(
        account.url,
        held,
        client_id=account.client_id,
        client_secret=account.client_secret,
        token_endpoint_auth_method=method,
        scope=" ".join(account.scopes) or None,
        issuer=account.issuer,
    )
    return provider, held


def _by_key(account: ServerAccount) -> tuple[OAuthClientProvider, TokensInHand]:
    held = TokensInHand()
    signed = SignedJWTParameters(
        issuer=account.client_id,
        subject=account.client_id,
        signing_key=account.private_key,
        signing_algorithm=account.signing_algorithm,
    )
    provider = PrivateKeyJWTOAuthProvider(
        account.url,
        held,
        client_id=account.client_id,
        assertion_provider=signed.create_assertion_provider(),
        scope=" ".join(account.scopes) or None,
        issuer=account.issuer,
    )
    return provider, held
