"""An authorization server on loopback, on authlib: rotation with an alarm, and outages to switch on."""

# Pyright brings stubs of an older authlib, which differ from the installed one in these respects.
# pyright: reportIncompatibleMethodOverride=false, reportReturnType=false

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Mapping
from typing import Any, override

from authlib.oauth2 import AuthorizationServer, OAuth2Error, OAuth2Request
from authlib.oauth2.rfc6749 import JsonPayload, JsonRequest
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from oauth.issued_tokens import SCOPES, IssuedToken, RegisteredClient, TokenBook
from oauth.loopback import LoopbackServer
from oauth.signing_keys import SigningKeys
from oauth.token_grants import (
    CLIENT_AUTH,
    CodeGrant,
    Introspection,
    MachineGrant,
    NamedIssuer,
    RefreshGrant,
    Registration,
    Revocation,
    S256Only,
    SignedAssertion,
    new_token,
)

METADATA = "/.well-known/oauth-authorization-server"
RESOURCE_SERVER = "resource-server"
"""The client as which resource servers ask about tokens."""
RETRY_AFTER = "1"


class LoopbackRequest(OAuth2Request):
    """A request, read; loopback may be plain HTTP, which authlib would refuse."""

    def __init__(self, request: Request, form: Mapping[str, str]) -> None:
        super().__init__(request.method, str(request.url).replace("http:", "https:", 1), headers=request.headers)
        self._form = dict(form)
        self._args = dict(request.query_params)
        self.payload = BasicOAuth2Payload({**self._args, **self._form})

    @property
    @override
    def args(self) -> dict[str, str]:
        return self._args

    @property
    @override
    def form(self) -> dict[str, str]:
        return self._form


class _ReadBody(JsonPayload):
    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    @property
    def data(self) -> dict[str, Any]:
        return self._body


class LocatedResponse(Response):
    """A response whose redirect authlib may extend."""

    @property
    def location(self) -> str:
        return self.headers.get("location", "")

    @location.setter
    def location(self, value: str) -> None:
        self.headers["location"] = value


class IssuingServer(AuthorizationServer):
    """The protocol; what it issues stands in its book."""

    def __init__(self, book: TokenBook, issuer: str) -> None:
        super().__init__(scopes_supported=SCOPES)
        self.book = book
        self.issuer = issuer
        self.announced_issuer: str | None = issuer
        """What redirects name as ``iss``; None: nothing."""
        self.lifetime: float = 3600.0
        self.tells_lifetime = True
        self.dynamic_registration = True
        self.signing: SigningKeys | None = None
        """With keys, access tokens are JWTs (RFC 9068)."""
        self.documents: dict[str, dict[str, Any]] | None = None
        """Client id metadata documents by address, as if fetched; None: not supported."""
        self.register_token_generator("default", BearerTokenGenerator(new_token, new_token, self._seconds))
        self.register_client_auth_method("private_key_jwt", SignedAssertion(issuer))
        self.register_grant(CodeGrant, [S256Only(required=True)])
        self.register_grant(RefreshGrant)
        self.register_grant(MachineGrant)
        for endpoint in (Registration, Introspection, Revocation):
            self.register_endpoint(endpoint)  # pyright: ignore[reportArgumentType] - as authlib's own manual does
        self.register_extension(NamedIssuer)

    @override
    def generate_token(self, *given: Any, scope: str = "", **more: Any) -> dict[str, Any]:
        kept = [name for name in (scope or "").split() if name not in self.book.withheld]
        return super().generate_token(*given, scope=" ".join(kept), **more)

    def _seconds(self, client: Any, grant_type: str) -> int:
        return max(1, math.ceil(self.lifetime)) if self.tells_lifetime else 0

    @override
    def query_client(self, client_id: str) -> RegisteredClient | None:
        document = (self.documents or {}).get(client_id)
        if document and document.get("client_id") == client_id:
            return RegisteredClient(client_id, document["redirect_uris"])
        return self.book.clients.get(client_id)

    @override
    def save_token(self, token: dict[str, Any], request: Any) -> None:
        before: Any = request.refresh_token or request.authorization_code
        resource: str = before.resource if before else request.payload.data.get("resource", "")
        if self.signing:
            claims = self._claims(token, request.user or request.client.client_id, request.client.client_id)
            token["access_token"] = self.signing.sign(claims | {"aud": resource})
        self.book.add(
            IssuedToken(
                token["access_token"],
                token.get("refresh_token", ""),
                request.client.client_id,
                token.get("scope", ""),
                request.user or "",
                resource,
                time.time() + self.lifetime,
                before.family if isinstance(before, IssuedToken) else secrets.token_hex(8),
            )
        )

    def _claims(self, token: dict[str, Any], subject: str, client: str) -> dict[str, Any]:
        now = int(time.time())
        known = {"iss": self.issuer, "sub": subject, "client_id": client, "iat": now, "jti": secrets.token_hex(8)}
        return known | {"exp": now + int(self.lifetime), "scope": token.get("scope", "")} | self.book.told_of(subject)

    @override
    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    @override
    def create_oauth2_request(self, request: Any) -> LoopbackRequest:
        return request

    @override
    def create_json_request(self, request: Any) -> JsonRequest:
        return request

    @override
    def handle_response(self, status: int, body: Any, headers: Any) -> LocatedResponse:
        text = body if isinstance(body, str) else json.dumps(body)
        return LocatedResponse(text, status, dict(headers))

    def metadata(self) -> dict[str, Any]:
        """Return the document of RFC 8414."""
        found: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "introspection_endpoint": f"{self.issuer}/introspect",
            "revocation_endpoint": f"{self.issuer}/revoke",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": CLIENT_AUTH,
            "token_endpoint_auth_signing_alg_values_supported": ["ES256", "RS256"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": list(SCOPES),
            "authorization_response_iss_parameter_supported": self.announced_issuer is not None,
            "client_id_metadata_document_supported": self.documents is not None,
        }
        return found | ({"registration_endpoint": f"{self.issuer}/register"} if self.dynamic_registration else {})


class LoopbackAuthorizationServer(LoopbackServer):
    """The authorization server of a test, with what it issued and its outages."""

    def __init__(self) -> None:
        """Listen on a port of its own; nothing is answered before it is started."""
        super().__init__(self._answer)
        self.book = TokenBook()
        self.issuing = IssuingServer(self.book, self.origin)
        self.outages: dict[str, str] = {}
        """By path, or ``*``: 503, 429, ``hang`` before anything is done, ``mute`` after all is done."""
        self.received: list[bytes] = []
        """Every query, header and body that came."""
        self._routes = Starlette(routes=_routes(self.issuing))
        self.resource_secret = new_token()
        self.add_client(RESOURCE_SERVER, secret=self.resource_secret, auth_method="client_secret_basic", grants=())

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each thing happened, and how often each path was asked for."""
        return self.book.counts

    def add_client(self, client_id: str, **known: Any) -> None:
        """Register a client by hand."""
        self.book.clients[client_id] = RegisteredClient(client_id, **known)

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self.book.counts[scope["path"]] += 1
        head = b"\n".join([scope["query_string"], *(value for _, value in scope["headers"])])
        self.received.append(head)

        async def heard() -> Any:
            message = await receive()
            self.received.append(message.get("body", b""))
            return message

        outage = self.outages.get(scope["path"]) or self.outages.get("*", "")
        if outage.isdigit():
            return await Response(status_code=int(outage), headers={"retry-after": RETRY_AFTER})(scope, receive, send)
        if outage != "hang":
            await self._routes(scope, heard, _nowhere if outage == "mute" else send)
        if outage:
            await _until_gone(receive)


async def _nowhere(message: Any) -> None:
    """Lose an answer."""


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _routes(server: IssuingServer) -> list[Route]:
    async def metadata(request: Request) -> Response:
        return JSONResponse(server.metadata())

    async def jwks(request: Request) -> Response:
        return JSONResponse(server.signing.published() if server.signing else {"keys": []})

    async def authorize(request: Request) -> Response:
        asked = LoopbackRequest(request, {})
        user = request.cookies.get("user", "")
        try:
            grant = server.get_authorization_grant(asked)
        except OAuth2Error as error:
            return server.handle_error_response(asked, error)
        return server.create_authorization_response(asked, grant_user=user, grant=grant)

    async def token(request: Request) -> Response:
        return server.create_token_response(LoopbackRequest(request, await _form(request)))

    async def register(request: Request) -> Response:
        if not server.dynamic_registration:
            return Response(status_code=404)
        asked = JsonRequest(request.method, str(request.url), request.headers)
        asked.payload = _ReadBody(await request.json())
        return _answered(server, "client_registration", asked)

    async def introspect(request: Request) -> Response:
        return _answered(server, "introspection", LoopbackRequest(request, await _form(request)))

    async def revoke(request: Request) -> Response:
        return _answered(server, "revocation", LoopbackRequest(request, await _form(request)))

    posts = {"/token": token, "/register": register, "/introspect": introspect, "/revoke": revoke}
    gets = {METADATA: metadata, "/authorize": authorize, "/jwks": jwks}
    return [Route(path, do, methods=["POST"]) for path, do in posts.items()] + [Route(*pair) for pair in gets.items()]


async def _form(request: Request) -> dict[str, str]:
    form = await request.form()
    return {name: value for name, value in form.items() if isinstance(value, str)}


def _answered(server: IssuingServer, endpoint: str, request: Any) -> Response:
    return server.create_endpoint_response(endpoint, request) or Response(status_code=500)
