"""Reads what an authorization server publishes: bounded in size and time, and never from where a redirect leads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import httpx2
import orjson

from onetool_team.identity import TokensUncheckable
from ot.proxied.guarded_client import GuardedClient
from ot.proxied.internal_addresses import AddressRule
from ot.proxied.reply_faults import Refused

MAX_BYTES = 256 << 10
SECONDS = 10.0
"""For one document, from the first byte of the request to the last one of the answer."""
CONNECTIONS = 16


def open_client(rule: AddressRule) -> GuardedClient:
    """Return a client for the addresses that the operator configured, and for what those name.

    Raises:
        Refused: The environment names a proxy or certificates that cannot be used.
    """
    limits = httpx2.Limits(max_connections=CONNECTIONS, keepalive_expiry=4.0)
    return GuardedClient(rule, timeout=SECONDS, limits=limits, follow_redirects=False)


async def fetch_json(client: httpx2.AsyncClient, url: str, **request: Any) -> Mapping[str, Any]:
    """Return the JSON object at *url*; a *request* with data is a POST.

    Raises:
        TokensUncheckable: It is unavailable or malformed; the text is for the operator.
    """
    method = "POST" if "data" in request else "GET"
    try:
        async with (
            asyncio.timeout(SECONDS),
            client.stream(method, url, headers={"accept": "application/json"}, **request) as response,
        ):
            if response.status_code != 200:
                raise TokensUncheckable(f"{url} answered HTTP {response.status_code}")
            return _object(await _body(response, url), url)
    except (httpx2.HTTPError, httpx2.StreamError, Refused, TimeoutError, OSError) as error:
        raise TokensUncheckable(f"{url} is unavailable: {str(error) or type(error).__name__}") from None


async def _body(response: httpx2.Response, url: str) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            raise TokensUncheckable(f"{url} answered with more than {MAX_BYTES:,} bytes")
    return bytes(body)


def _object(body: bytes, url: str) -> Mapping[str, Any]:
    try:
        found: Any = orjson.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise TokensUncheckable(f"{url} did not answer with a JSON object")
    return cast("dict[str, Any]", found)


async def discover_keys(client: httpx2.AsyncClient, issuer: str) -> str:
    """Return where *issuer* publishes its keys, as its metadata says.

    Raises:
        TokensUncheckable: It has no metadata that can be used.
    """
    problems: list[str] = []
    for url in metadata_urls(issuer):
        try:
            return _keys_address(await fetch_json(client, url), issuer, url)
        except TokensUncheckable as error:
            problems.append(str(error))
    raise TokensUncheckable("; ".join(problems))


def metadata_urls(issuer: str) -> Iterator[str]:
    """Yield where the metadata of *issuer* may be: RFC 8414, then OpenID Connect in both of its places."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}{path}/.well-known/openid-configuration"
    if path:
        yield f"{origin}/.well-known/openid-configuration{path}"


def _keys_address(metadata: Mapping[str, Any], issuer: str, url: str) -> str:
    if metadata.get("issuer") != issuer:
        raise TokensUncheckable(f"{url} is the metadata of another issuer than http.oauth.issuer")
    address = metadata.get("jwks_uri")
    scheme = urlsplit(issuer).scheme
    if not isinstance(address, str) or not address.startswith(("https://", f"{scheme}://")):
        raise TokensUncheckable(f"{url} does not say where the keys are: set http.oauth.jwks_url")
    return address
