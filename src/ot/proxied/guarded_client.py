"""GuardedClient: an HTTP client that trusts what its user trusts, and connects to nothing that its rule forbids."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

import anyio
import httpcore2
import httpx2

from ot.proxied.internal_addresses import AddressRule
from ot.proxied.reply_faults import Refused
from ot_sdk.network import NamedCertificates

LIMITS = httpx2.Limits(max_connections=100, max_keepalive_connections=20)
NEXT_SECONDS = 2.0
"""How long an address may take to be connected where the name has another one."""
ANSWER_SECONDS, ANSWER_BYTES = 30.0, 1 << 20
"""What the answer of an authorization server may take as a whole; a renewal is locked for longer than that."""
UNWRAPPED = ("content-encoding", "content-length", "transfer-encoding")


class GuardedClient(httpx2.AsyncClient):
    """Proxies and certificates are those of the environment."""

    def __init__(self, rule: AddressRule, *, limits: httpx2.Limits = LIMITS, **options: Any) -> None:
        """Connect to what *rule* lets through.

        Raises:
            Refused: The environment names a proxy or certificates that cannot be used.
        """
        self._rule = rule
        trusted = trusted_certificates(os.environ)
        self._checked = httpx2.AsyncHTTPTransport(verify=trusted, limits=limits)
        self._checked._pool._network_backend = _CheckedNetwork(rule)  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - nothing public leads there
        try:
            # Mounted for no address, so that it is closed with the others.
            super().__init__(verify=trusted, limits=limits, mounts={"checked://": self._checked}, **options)
        except (ImportError, ValueError) as error:
            raise Refused(f"the proxy that the environment names cannot be used: {error}") from error

    def _transport_for_url(self, url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        """Return the transport for *url*; the library asks for it with each request and each redirect it follows."""
        found = super()._transport_for_url(url)
        if self._rule.trusts(url):
            return found
        return self._checked if found is self._transport else _CheckedProxy(self._rule, found)


async def ask(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    """Return the answer to *request*, read as a whole: who answers slowly or without an end is not waited for.

    Raises:
        httpx2.HTTPError: There was none, or not in time.
        Refused: It is too long.
    """
    data = bytearray()
    try:
        with anyio.fail_after(ANSWER_SECONDS):
            answer = await client.send(request, stream=True)
            try:
                async for chunk in answer.aiter_bytes():
                    data += chunk
                    if len(data) > ANSWER_BYTES:
                        raise Refused(f"the answer of {request.url.host} is longer than {ANSWER_BYTES >> 20} MB")
            finally:
                await answer.aclose()
    except TimeoutError:
        raise httpx2.ReadTimeout(f"its answer took longer than {ANSWER_SECONDS:g} s") from None
    headers = [(name, text) for name, text in answer.headers.multi_items() if name.lower() not in UNWRAPPED]
    return httpx2.Response(answer.status_code, headers=headers, content=bytes(data), request=request)


class _CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to the very addresses that the rule has seen, so that a name cannot change in between.

    What is above still knows the name, for the Host header and the certificate.
    """

    def __init__(self, rule: AddressRule) -> None:
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
        try:
            with anyio.fail_after(timeout):
                addresses = await self._rule.look_up(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"the addresses of {host} were not found in time") from None
        refused: Exception = httpcore2.ConnectError(f"no address of {host} was found")
        for address in addresses:
            seconds = timeout if address == addresses[-1] else min(timeout or NEXT_SECONDS, NEXT_SECONDS)
            try:
                return await self._network.connect_tcp(address, port, seconds, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                refused = error
        raise refused


class _CheckedProxy(httpx2.AsyncBaseTransport):
    """Lets a proxy connect what is unknown here, and looks at all else."""

    def __init__(self, rule: AddressRule, proxy: httpx2.AsyncBaseTransport) -> None:
        self._rule = rule
        self._proxy = proxy

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the proxy's answer, or the one it passed on."""
        await self._rule.check(request.url)
        return await self._proxy.handle_async_request(request)


# ---------------------------------------------------------------- certificates


def trusted_certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return the trusted CA certificates: those that the variables name, else the system's.

    Raises:
        Refused: A variable names what is not there, or no certificate.
    """
    named = NamedCertificates.of(environ)
    try:
        return _context(named)
    except OSError as error:
        text = f"{named.variable} names '{named.file}', where no certificates can be read: {error}"
        raise Refused(text) from None


@lru_cache(maxsize=4)
def _context(named: NamedCertificates) -> ssl.SSLContext:
    # A tenth of a second of work, too much for every connection.
    return named.context() or httpx2.create_ssl_context(trust_env=False)
