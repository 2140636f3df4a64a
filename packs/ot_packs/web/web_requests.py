"""One HTTP request to a place that was looked at: no internal address, no endless body, no bomb."""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from typing import Any, cast
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
from certificates import certificates
from gzip_body import GzipBody

from ot_sdk.network import is_allowed, is_internal, place

PORTS = {"http": 80, "https": 443}
FREE_PORTS = range(1024, 65536)
"""Below them, mail and other services would read a request as their own commands."""
CONNECT_SECONDS = 10.0
NEXT_SECONDS = 3.0
"""For an address that is not the last: many hosts have an IPv6 address that a network cannot reach."""
MAX_URL = 8192


class TooLarge(Exception):
    """A body is larger than the limit."""


@dataclass(frozen=True)
class WebAnswer:
    """What one request brought."""

    url: str
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes
    cached: bool = False

    @cached_property
    def type(self) -> str:
        """The media type, in lower case; empty where the server named none."""
        return self._content_type.get_content_type()[:100] if self.headers.get("content-type", "").strip() else ""

    @property
    def is_page(self) -> bool:
        """Whether it is a success, and whole: no part was asked for."""
        return 200 <= self.status < 300 and self.status != 206

    @property
    def charset(self) -> str:
        """The charset that the server named, or nothing."""
        return self._content_type.get_content_charset("") if self.type else ""

    @cached_property
    def _content_type(self) -> Message:
        message = Message()
        message["content-type"] = self.headers.get("content-type", "")
        return message


class PlaceRule:
    """Decides on the addresses that a name has at the moment of connecting, not on the name."""

    def __init__(self, allowed: Collection[str]) -> None:
        self._allowed = tuple(allowed)

    def check_url(self, url: str, base: httpx2.URL | None = None) -> httpx2.URL:
        """Return *url*, seen from *base*, as what is requested; its fragment is left out.

        Raises:
            ValueError: The address is malformed, or not one of a web page.
            PermissionError: Its port is one of other services.
        """
        if len(url) > MAX_URL:
            raise ValueError(f"an address of {len(url):,} characters is too long: at most {MAX_URL:,}")
        try:
            found = (base.join(url) if base else httpx2.URL(url)).copy_with(fragment=None)
            port = found.port or PORTS.get(found.scheme, 0)
        except (httpx2.InvalidURL, ValueError, UnicodeError) as error:
            raise ValueError(f"{_short(url)} is not an address: {error}") from None
        if found.scheme not in PORTS or not found.host:
            raise ValueError(f"{_short(url)} is not an address that starts with http:// or https:// and a host")
        if found.userinfo:
            raise ValueError(f"the address of {found.host} holds a user name or password: leave it out")
        if port not in {*PORTS.values(), *FREE_PORTS} and not is_allowed(self._allowed, found.host, port):
            raise PermissionError(f"port {port} of {found.host} is not one of web servers; nothing was sent")
        return found

    async def look_up(self, host: str, port: int) -> list[str]:
        """Return the addresses of *host*, each looked at; one answer of the resolver is both judged and used.

        Raises:
            ConnectionError: It has none here.
            PermissionError: One of them is internal, and *host* is not allowed to have such.
        """
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ConnectionError(
                f"no address of {host} was found: check its spelling, and that this machine has a network and a "
                "name server (behind a proxy, set HTTPS_PROXY and HTTP_PROXY)"
            ) from None
        addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
        for address in addresses:
            if is_internal(address) and not is_allowed(self._allowed, host, port):
                raise PermissionError(
                    f"{host} has the internal address {address}; nothing was sent. If pages from there are wanted, "
                    f"add '{place(host, port)}' to tools.web.internal_hosts in your own configuration"
                )
        return addresses


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to the very addresses that the rule has seen, so that a name cannot change in between.

    What is above still knows the name, for the Host header and the certificate.
    """

    def __init__(self, rule: PlaceRule) -> None:
        self._rule = rule
        self._network: httpcore2.AsyncNetworkBackend = cast("Any", httpcore2.AnyIOBackend)()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection to the first address of *host* that takes it."""
        refused: Exception = httpcore2.ConnectError(f"{host} has no address")
        addresses = await self._rule.look_up(host, port)
        for address in addresses:
            seconds = CONNECT_SECONDS if address == addresses[-1] else NEXT_SECONDS
            try:
                return await self._network.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        raise refused


class DirectTransport(httpx2.AsyncHTTPTransport):
    """The library's transport on a network that is checked."""

    def __init__(self, rule: PlaceRule, trusted: ssl.SSLContext) -> None:
        super().__init__(verify=trusted)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=trusted, keepalive_expiry=5.0, network_backend=CheckedNetwork(rule)
        )


class Requests:
    """Sends requests, through the environment's proxy where it names one; no cookie is ever kept or sent."""

    def __init__(self, rule: PlaceRule, user_agent: str, max_bytes: int) -> None:
        self._rule = rule
        self._max_bytes = max_bytes
        self._headers = {
            "User-Agent": user_agent,
            "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.9,*/*;q=0.5",
            "Accept-Encoding": "gzip",  # of deflate there are two kinds
        }
        self._transports: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], *, body: bool = True, max_bytes: int = 0
    ) -> WebAnswer:
        """Return what *url* answers, without following a redirect; without *body*, only its head.

        Raises:
            ConnectionError: It cannot be reached, breaks off, or its body cannot be unpacked.
            PermissionError: Its address is internal.
            ValueError: Its body is too large.
        """
        request = httpx2.Request(method, url, headers={**self._headers, **headers})
        limit = max_bytes or self._max_bytes
        try:
            response = await self._response(request)
            try:
                wanted = body and method == "GET" and response.is_success
                content = await _read(response, limit) if wanted else b""
            finally:
                await response.aclose()
        except TooLarge:
            raise ValueError(
                f"{url} is larger than {limit:,} bytes: fetch a smaller page, or raise tools.web.max_bytes"
            ) from None
        except zlib.error as error:
            raise ConnectionError(f"{url} sent a body that cannot be unpacked: {error}") from None
        except httpx2.HTTPError as error:
            raise ConnectionError(f"{url} could not be fetched: {_why(error)}") from None
        return WebAnswer(str(url), response.status_code, response.reason_phrase, _plain(response.headers), content)

    async def _response(self, request: httpx2.Request) -> httpx2.Response:
        transport = await self._transport(request.url)
        try:
            return await transport.handle_async_request(request)
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            # A connection that was kept may have been closed meanwhile, and nothing that is sent here has an effect.
            return await transport.handle_async_request(request)

    async def _transport(self, url: httpx2.URL) -> httpx2.AsyncHTTPTransport:
        proxies = getproxies()
        proxy = proxies.get(url.scheme) or proxies.get("all") or ""
        if proxy and not proxy_bypass(url.host):
            with suppress(ConnectionError):  # a name that only the proxy knows is the proxy's to judge
                await self._rule.look_up(url.host, url.port or PORTS[url.scheme])
        else:
            proxy = ""
        if proxy not in self._transports:
            self._transports[proxy] = self._new_transport(proxy)
        return self._transports[proxy]

    def _new_transport(self, proxy: str) -> httpx2.AsyncHTTPTransport:
        if not proxy:
            return DirectTransport(self._rule, certificates())
        try:
            return httpx2.AsyncHTTPTransport(verify=certificates(), proxy=proxy)
        except (ImportError, ValueError, httpx2.InvalidURL):  # what they say may hold a part of the password
            raise ConnectionError(
                "the proxy that the environment names cannot be used: HTTP_PROXY and HTTPS_PROXY must be like "
                "http://host:port, with special characters of a password in percent signs"
            ) from None


async def _read(response: httpx2.Response, limit: int) -> bytes:
    """Return the body, of which no more than *limit* bytes are ever in memory, before and after it is unpacked."""
    if int(response.headers.get("content-length", "0")) > limit:
        raise TooLarge
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip"):
        raise zlib.error(f"it is encoded as {encoding[:80]!r}, which was not asked for")
    packed = GzipBody(limit) if encoding.endswith("gzip") else None
    body, received = bytearray(), 0
    async for chunk in response.aiter_raw():
        received += len(chunk)
        body += packed.add(chunk) if packed else chunk
        if len(body) > limit or received > limit:
            raise TooLarge
    if packed:
        packed.end()
    return bytes(body)


def _plain(headers: httpx2.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _why(error: httpx2.HTTPError) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, httpx2.ConnectError):
        return f"{text}: check that it is up, and that this machine has a network"
    return text


def _short(url: str) -> str:
    return repr(url if len(url) <= 200 else f"{url[:200]}...")
