"""Host and Origin: requests must be for a name that is ours, and no foreign web page may send them."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import urlsplit

from onetool_team.http.answers import send_failure
from onetool_team.http.asgi import AsgiApp, Receive, Scope, Send, all_headers
from onetool_team.settings import Http

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
PORTS = {"http": 80, "https": 443}
WRONG_HOST = (
    "this server is not known by the name that the request's Host header gives. Use an address of the server's own, "
    "or let its operator add the name to http.hosts or http.public_url"
)
WRONG_ORIGIN = "web pages of this origin may not call this server. Its operator may add the origin to http.origins"


class HostOrigin:
    """Lets only requests through whose Host is one of ours, and whose Origin, if any, may call."""

    def __init__(self, app: AsgiApp, settings: Http) -> None:
        """Admit loopback names, and the hosts and origins that the operator named in *settings*."""
        public = urlsplit(settings.public_url)
        origin = [f"{public.scheme}://{public.netloc}"] if public.hostname else []
        self._app = app
        self._hosts = {*LOOPBACK_NAMES, public.hostname or "", *map(host_name, settings.hosts)} - {""}
        self._origins = {_origin(text) for text in (*origin, *settings.origins)} - {""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say which header is wrong."""
        hosts, origins = all_headers(scope, b"host"), all_headers(scope, b"origin")
        if len(hosts) != 1 or host_name(hosts[0].decode("latin-1")) not in self._hosts:
            await send_failure(scope, send, HTTPStatus.MISDIRECTED_REQUEST, WRONG_HOST)
        elif origins and not self._may_call(origins):
            await send_failure(scope, send, HTTPStatus.FORBIDDEN, WRONG_ORIGIN)
        else:
            await self._app(scope, receive, send)

    def _may_call(self, origins: list[bytes]) -> bool:
        # This server sends no pages: its own origin, too, may call only if it is named.
        return len(origins) == 1 and _origin(origins[0].decode("latin-1")) in self._origins


def host_name(host: str) -> str:
    """Return the name in a Host header, in lower case and without its port; nothing if it is malformed."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port  # raises where it is not a number
    except ValueError:
        return ""
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return ""
    return (parts.hostname or "").removesuffix(".")


def _origin(text: str) -> str:
    """Return an origin with its port written out; nothing for one that is not an origin, such as null."""
    try:
        parts = urlsplit(text.rstrip("/"))
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return ""
    if not parts.hostname or port is None or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return ""
    return f"{parts.scheme}://{parts.hostname}:{port}"
