"""Routes: which path is answered by what, and how requests for anything else are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from onetool_team.http.answers import send_failure
from onetool_team.http.asgi import AsgiApp, Receive, Scope, Send

UNKNOWN = "nothing is at this address. MCP is spoken at /mcp; /healthz and /readyz say how the server is"
WRONG_METHOD = "this address takes {methods} only"
STATELESS = ". The server keeps no sessions: nothing is to be read or ended between requests"


@dataclass(frozen=True, slots=True)
class Route:
    """What answers at one path, by which methods."""

    app: AsgiApp
    methods: tuple[str, ...] = ("GET", "HEAD")


class Routes:
    """Answers each path by its own application."""

    def __init__(self, routes: Mapping[str, Route], others: AsgiApp | None = None) -> None:
        """Know *routes* by path; *others* answers at all other paths, where nothing is otherwise."""
        self._routes = dict(routes)
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say what is there instead."""
        # As it was sent: what a proxy in front compared, undecoded, is what counts here.
        route = self._routes.get(scope["raw_path"].decode("latin-1"))
        if route is None and self._others:
            await self._others(scope, receive, send)
        elif route is None:
            await send_failure(scope, send, HTTPStatus.NOT_FOUND, UNKNOWN)
        elif scope["method"] not in route.methods:
            methods = ", ".join(route.methods)
            message = WRONG_METHOD.format(methods=methods) + (STATELESS if route.methods == ("POST",) else "")
            await send_failure(scope, send, HTTPStatus.METHOD_NOT_ALLOWED, message, [(b"allow", methods.encode())])
        else:
            await route.app(scope, receive, send)
