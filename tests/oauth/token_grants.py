"""The grants and endpoints of the tests' authorization server, on authlib."""

# Pyright brings stubs of an older authlib, which differ from the installed one in these respects.
# pyright: reportIncompatibleMethodOverride=false, reportGeneralTypeIssues=false, reportCallIssue=false
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

import secrets
from typing import Any, ClassVar

from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7523 import JWTBearerClientAssertion
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc9207 import IssuerParameter

from oauth.issued_tokens import IssuedCode, IssuedToken, RegisteredClient, TokenBook

CLIENT_AUTH = ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]


class S256Only(CodeChallenge):
    """PKCE as MCP demands it: always, and never in plain."""

    SUPPORTED_CODE_CHALLENGE_METHOD: ClassVar[list[str]] = ["S256"]


class CodeGrant(grants.AuthorizationCodeGrant):
    """Redeems a code once."""

    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_AUTH

    def save_authorization_code(self, code: str, request: Any) -> None:
        data = request.payload.data
        self.server.book.codes[code] = IssuedCode(
            code,
            request.client.client_id,
            request.payload.redirect_uri,
            request.scope,
            request.user,
            data.get("resource", ""),
            data.get("code_challenge", ""),
            data.get("code_challenge_method", ""),
        )

    def query_authorization_code(self, code: str, client: Any) -> IssuedCode | None:
        found = self.server.book.codes.get(code)
        return found if found and found.client_id == client.client_id else None

    def delete_authorization_code(self, authorization_code: IssuedCode) -> None:
        del self.server.book.codes[authorization_code.code]
        self.server.book.counts["logins"] += 1

    def authenticate_user(self, authorization_code: IssuedCode) -> str:
        return authorization_code.user


class RefreshGrant(grants.RefreshTokenGrant):
    """Rotates at every use."""

    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_AUTH
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> IssuedToken | None:
        return self.server.book.usable_refresh(refresh_token)

    def authenticate_user(self, refresh_token: IssuedToken) -> str:
        return refresh_token.user

    def revoke_old_credential(self, refresh_token: IssuedToken) -> None:
        refresh_token.rotated = True
        self.server.book.counts["refreshes"] += 1


class MachineGrant(grants.ClientCredentialsGrant):
    """Serves clients that no person logs in for."""

    TOKEN_ENDPOINT_AUTH_METHODS = CLIENT_AUTH

    def create_token_response(self) -> Any:
        self.server.book.counts["client_credentials"] += 1
        return super().create_token_response()


class Registration(ClientRegistrationEndpoint):
    """Registers whoever asks."""

    def authenticate_token(self, request: Any) -> bool:
        return True

    def get_server_metadata(self) -> dict[str, Any]:
        return self.server.metadata()  # pyright: ignore[reportOptionalMemberAccess] - set when it is registered

    def generate_client_info(self, request: Any) -> dict[str, Any]:
        found = super().generate_client_info(request)
        return found if _wants_secret(request.payload.data) else found | {"client_secret": None}

    def save_client(self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: Any) -> Any:
        book: TokenBook = self.server.book  # pyright: ignore[reportOptionalMemberAccess]
        book.counts["registrations"] += 1
        client = RegisteredClient(
            client_info["client_id"],
            client_metadata.get("redirect_uris", ()),
            client_info["client_secret"] or "",
            client_metadata.get("token_endpoint_auth_method", "client_secret_basic"),
        )
        book.clients[client.client_id] = client
        return client


def _wants_secret(metadata: Any) -> bool:
    return metadata.get("token_endpoint_auth_method", "client_secret_basic").startswith("client_secret")


class Introspection(IntrospectionEndpoint):
    """Tells resource servers about access tokens."""

    CLIENT_AUTH_METHODS = ("client_secret_basic", "client_secret_post")

    def check_permission(self, token: Any, client: Any, request: Any) -> bool:
        return True

    def query_token(self, token_string: str, token_type_hint: str | None) -> IssuedToken | None:
        return self.server.book.by_access(token_string)

    def introspect_token(self, token: IssuedToken) -> dict[str, Any]:
        subject = token.user or token.client_id
        known = {"client_id": token.client_id, "scope": token.scope, "sub": subject, "aud": token.resource}
        known |= {"active": True, "token_type": "Bearer", "exp": int(token.expires_at) + 1}
        return known | self.server.book.told_of(subject)


class Revocation(RevocationEndpoint):
    """Revokes a whole family by either of its tokens."""

    CLIENT_AUTH_METHODS = CLIENT_AUTH

    def query_token(self, token_string: str, token_type_hint: str | None) -> IssuedToken | None:
        book: TokenBook = self.server.book
        return book.by_access(token_string) or book.by_refresh(token_string)

    def revoke_token(self, token: IssuedToken, request: Any) -> None:
        self.server.book.counts["revocations"] += 1
        self.server.book.revoke_family(token.family)


class SignedAssertion(JWTBearerClientAssertion):
    """Authenticates a client by a JWT that it signed with its private key."""

    CLIENT_AUTH_METHOD = "private_key_jwt"

    def __init__(self, issuer: str) -> None:
        super().__init__()
        self._issuer = issuer
        self._used: set[str] = set()

    def get_audiences(self) -> list[str]:
        return [self._issuer, f"{self._issuer}/token"]

    def validate_jti(self, claims: Any, jti: str) -> bool:
        fresh = jti not in self._used
        self._used.add(jti)
        return fresh

    def resolve_client_public_key(self, client: RegisteredClient) -> Any:
        return client.public_key


class NamedIssuer(IssuerParameter):
    """Says in each redirect which server sent it."""

    def __init__(self, server: Any) -> None:
        self._server = server
        super().__call__(server)

    def get_issuer(self) -> str | None:
        return self._server.announced_issuer


def new_token(**_: Any) -> str:
    """Return a token that a search of bytes finds."""
    return secrets.token_urlsafe(32)
