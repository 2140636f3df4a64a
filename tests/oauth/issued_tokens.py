"""What the authorization server of the tests remembers: clients, codes, tokens, and the families that tokens form."""

# Pyright brings stubs of an older authlib, which differ from the installed one in these respects.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from authlib.oauth2.rfc6749.models import AuthorizationCodeMixin, ClientMixin, TokenMixin

SCOPES = ("read", "write", "offline_access", "run", "admin")


@dataclass
class RegisteredClient(ClientMixin):
    """A client, however the server came to know it."""

    client_id: str
    redirect_uris: Collection[str] = ()
    secret: str = ""
    auth_method: str = "none"
    grants: Collection[str] = ("authorization_code", "refresh_token")
    public_key: Any = None

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return next(iter(self.redirect_uris), "")

    def get_allowed_scope(self, scope: str | None) -> str:
        return " ".join(name for name in (scope or "read").split() if name in SCOPES)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return _without_port(redirect_uri) in map(_without_port, self.redirect_uris)

    def check_client_secret(self, client_secret: str) -> bool:
        return bool(self.secret) and secrets.compare_digest(self.secret, client_secret)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == self.auth_method

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type in self.grants


def _without_port(uri: str) -> tuple[str, str | None, str]:
    """Return what must be the same of a loopback redirect: a native client's port may be any (RFC 8252)."""
    parts = urlsplit(uri)
    return parts.scheme, parts.hostname if parts.hostname == "127.0.0.1" else parts.netloc, parts.path


@dataclass
class IssuedCode(AuthorizationCodeMixin):
    """An authorization code that was not redeemed yet."""

    code: str
    client_id: str
    redirect_uri: str
    scope: str
    user: str
    resource: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


@dataclass
class IssuedToken(TokenMixin):
    """An access token and the refresh token that came with it."""

    access: str
    refresh: str
    client_id: str
    scope: str
    user: str
    resource: str
    expires_at: float
    family: str
    rotated: bool = False
    revoked: bool = False

    def check_client(self, client: Any) -> bool:
        return self.client_id == client.client_id

    def get_scope(self) -> str:
        return self.scope

    def is_expired(self) -> bool:
        return time.time() >= self.expires_at

    def is_revoked(self) -> bool:
        return self.revoked

    @property
    def active(self) -> bool:
        """Whether a resource server may take the access token."""
        return not self.is_expired() and not self.revoked


@dataclass
class TokenBook:
    """All of it, and how often each thing happened."""

    clients: dict[str, RegisteredClient] = field(default_factory=dict[str, RegisteredClient])
    codes: dict[str, IssuedCode] = field(default_factory=dict[str, IssuedCode])
    tokens: list[IssuedToken] = field(default_factory=list[IssuedToken])
    withheld: set[str] = field(default_factory=set[str])
    """Scopes that users ask for and do not get."""
    counts: Counter[str] = field(default_factory=Counter[str])
    """``logins``, ``refreshes``, ``alarms``, ``registrations`` and the like, and each path that was asked for."""

    told: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Further claims by subject, such as groups."""

    def told_of(self, subject: str) -> dict[str, Any]:
        """Return the further claims about *subject*."""
        return self.told.get(subject, {})

    def add(self, token: IssuedToken) -> None:
        """Remember a new token."""
        self.tokens.append(token)

    def by_access(self, access: str) -> IssuedToken | None:
        """Return the token whose access token this is."""
        return next((token for token in self.tokens if secrets.compare_digest(token.access, access)), None)

    def by_refresh(self, refresh: str) -> IssuedToken | None:
        """Return the token whose refresh token this is."""
        return next((token for token in self.tokens if token.refresh == refresh and refresh), None)

    def usable_refresh(self, refresh: str) -> IssuedToken | None:
        """Return the token to refresh; one that was rotated already was stolen or copied, and ends its family."""
        token = self.by_refresh(refresh)
        if token and token.rotated:
            self.counts["alarms"] += 1
            self.revoke_family(token.family)
        return token if token and not token.revoked else None

    def revoke_family(self, family: str) -> None:
        """Revoke every token that descends from the same login."""
        for token in self.tokens:
            token.revoked = token.revoked or token.family == family

    def revoke_all(self) -> None:
        """Revoke everything, as an administrator might."""
        for token in self.tokens:
            token.revoked = True

    def forget_access(self) -> None:
        """Let every access token be expired, whatever clients were told about its lifetime."""
        for token in self.tokens:
            token.expires_at = 0.0

    @property
    def secrets(self) -> set[str]:
        """Every text that must never leave the client."""
        found = {token.access for token in self.tokens} | {token.refresh for token in self.tokens}
        return {text for text in found | {client.secret for client in self.clients.values()} if text}
