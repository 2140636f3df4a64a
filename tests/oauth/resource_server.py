"""An MCP server on FastMCP that wants bearer tokens of an authorization server elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from fastmcp import FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.server.auth import AccessToken, RemoteAuthProvider, TokenVerifier
from fastmcp.server.auth.providers.introspection import IntrospectionTokenVerifier
from fastmcp.server.dependencies import get_http_headers
from pydantic import AnyHttpUrl
from starlette.responses import JSONResponse, Response

from oauth.authorization_server import RESOURCE_SERVER, LoopbackAuthorizationServer
from oauth.loopback import LoopbackServer

WELL_KNOWN = "/.well-known/oauth-protected-resource"
SLOW_SECONDS = 0.5
NEEDS_WRITE = frozenset({"store"})


class SharedBook(TokenVerifier):
    """Looks into the book of the authorization server, which is in the same process."""

    def __init__(self, issuer: LoopbackAuthorizationServer, resource: str) -> None:
        super().__init__(required_scopes=["read"])
        self.issuer = issuer
        self._resource = resource

    async def verify_token(self, token: str) -> AccessToken | None:
        found = self.issuer.book.by_access(token)
        if found is None or not found.active or found.resource.rstrip("/") != self._resource:
            return None
        return AccessToken(
            token=token, client_id=found.client_id, scopes=found.scope.split(), claims={"sub": found.user}
        )


class LoopbackResourceServer(LoopbackServer):
    """The MCP server of a test, and what reached it."""

    def __init__(self, issuer: LoopbackAuthorizationServer, introspects: bool = False) -> None:
        """Take tokens of *issuer*: by asking it, or by looking into its book."""
        super().__init__(self._answer, lifespan="on")
        self.url = f"{self.origin}/mcp"
        self.issuer = issuer
        self.calls: Counter[str] = Counter()
        """How often each tool was really called."""
        self.asked: Counter[str] = Counter()
        """How often each path was asked for."""
        self.refused: Counter[int] = Counter()
        self.tokens: list[str] = []
        """Each bearer token that came, in order."""
        self._verifier = _introspecting(issuer, self.url) if introspects else SharedBook(issuer, self.url)
        auth = RemoteAuthProvider(self._verifier, [AnyHttpUrl(issuer.origin)], base_url=self.origin)
        self._tools = _tools(self.calls, auth).http_app()

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._tools(scope, receive, send)
        self.asked[scope["path"]] += 1
        if scope["path"].startswith(WELL_KNOWN):
            return await self._metadata()(scope, receive, send)
        body, receive = await _body_of(receive) if scope["method"] == "POST" else (b"", receive)
        if refusal := self._refusal(dict(scope["headers"]), body):
            self.refused[403] += 1
            return await refusal(scope, receive, send)

        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                self.refused[message["status"]] += 1
            await send(message)

        return await self._tools(scope, receive, counted)

    def _metadata(self) -> Response:
        """Return the document of RFC 9728; the authorization server in it may change while a test runs."""
        document = {"resource": self.url, "authorization_servers": [self.issuer.origin]}
        return JSONResponse(document | {"scopes_supported": ["read"], "bearer_methods_supported": ["header"]})

    def move_to(self, issuer: LoopbackAuthorizationServer) -> None:
        """Take tokens of another authorization server from now on, and of no other."""
        self.issuer = issuer
        assert isinstance(self._verifier, SharedBook)
        self._verifier.issuer = issuer

    def _refusal(self, headers: dict[bytes, bytes], body: bytes) -> Response | None:
        """Return the refusal of a tool for which the token's scope is not enough."""
        token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        if token:
            self.tokens.append(token)
        known = self.issuer.book.by_access(token)
        if known is None or not known.active or _called(body) not in NEEDS_WRITE or "write" in known.scope.split():
            return None
        where = f'resource_metadata="{self.origin}{WELL_KNOWN}/mcp"'
        challenge = f'Bearer error="insufficient_scope", scope="write", {where}'
        return JSONResponse({"error": "insufficient_scope"}, 403, {"www-authenticate": challenge})


def _introspecting(issuer: LoopbackAuthorizationServer, resource: str) -> TokenVerifier:
    return IntrospectionTokenVerifier(
        introspection_url=f"{issuer.origin}/introspect",
        client_id=RESOURCE_SERVER,
        client_secret=issuer.resource_secret,
        required_scopes=["read"],
        audience=resource,
    )


def _called(body: bytes) -> str:
    try:
        message = json.loads(body)
    except ValueError:
        return ""
    return message.get("params", {}).get("name", "") if message.get("method") == "tools/call" else ""


async def _body_of(receive: Any) -> tuple[bytes, Any]:
    """Return the body of a request, and what gives it once more to who reads it next."""
    messages: list[Any] = []
    while not messages or messages[-1].get("more_body"):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)

    async def again() -> Any:
        return messages.pop(0) if messages else await receive()

    return body, again


def _tools(calls: Counter[str], auth: RemoteAuthProvider) -> FastMCP:
    mcp = FastMCP("guarded", instructions="for those who logged in", auth=auth)

    @mcp.tool
    async def echo(text: str) -> str:
        """Say it again."""
        calls["echo"] += 1
        return text

    @mcp.tool
    async def slow(text: str = "") -> str:
        """Take half a second."""
        calls["slow"] += 1
        await asyncio.sleep(SLOW_SECONDS)
        return text

    @mcp.tool
    async def reflect() -> str:
        """Tell what the request carried, as a careless server might."""
        return f"your header was {get_http_headers(include_all=True).get('authorization')}"

    @mcp.tool
    async def fail_with_it() -> str:
        """Raise with what the request carried."""
        raise ToolError(f"cannot use {get_http_headers(include_all=True).get('authorization')}")

    @mcp.tool
    async def store(text: str) -> str:
        """Keep it; needs the scope write."""
        calls["store"] += 1
        return f"stored {text}"

    return mcp
