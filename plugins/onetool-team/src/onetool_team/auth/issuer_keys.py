"""IssuerKeys: the public keys of an authorization server, kept while it is away, and never fetched in a storm."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

from onetool_team.identity import TokenRefused, TokensUncheckable

logger = logging.getLogger(__name__)

type PublicKey = RSAKey | ECKey | OKPKey
type FetchKeys = Callable[[], Awaitable[Mapping[str, Any]]]
"""Returns a JWK set; raises TokensUncheckable."""

FRESH_SECONDS = 300.0
"""Older keys are still used, and fetched again meanwhile."""
RETRY_SECONDS = 5.0
"""The least time between two fetches: an unknown key id, which anybody can write, causes no more."""
FIRST_SECONDS = 1.0
"""The same while no key is known yet, and nobody can be let in."""
KEPT_SECONDS = 24 * 3600.0
"""How long keys are used while they cannot be fetched: one that was withdrawn meanwhile is not good for ever."""
MAX_KEYS = 100
MODULUS_LENGTH = 342
"""Of 2048 bits, as a JWK writes them: shorter keys of RSA can be broken."""
KINDS = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
"""Never ``oct``: with a key that both sides know, whoever checks tokens could make them."""


class IssuerKeys:
    """Finds the key that a token names."""

    def __init__(self, fetch: FetchKeys, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Use the keys that *fetch* brings, by the *clock*."""
        self._fetch = fetch
        self._clock = clock
        self._keys: KeySet | None = None
        self._fetched = self._tried = float("-inf")
        self._failed = ""
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str | None, algorithm: str) -> PublicKey:
        """Return the key called *kid* for *algorithm*; without a name, the only one there is.

        Raises:
            TokenRefused: The issuer has no such key.
            TokensUncheckable: Whether it has cannot be found out now.
        """
        key = self._find_known(kid, algorithm)
        if key is None:
            await self._fetch_again()
            key = self._find_known(kid, algorithm)
        elif self._clock() - self._fetched > FRESH_SECONDS:
            self._begin()
        if key is not None:
            return key
        if self._failed:
            raise TokensUncheckable(self._failed)
        raise TokenRefused("the token is signed with an unknown key")

    async def aclose(self) -> None:
        """End a fetch that is under way."""
        if self._fetching:
            self._fetching.cancel()
            await asyncio.wait((self._fetching,))

    def _find_known(self, kid: str | None, algorithm: str) -> PublicKey | None:
        if self._keys is None or self._clock() - self._fetched > KEPT_SECONDS:
            return None
        try:
            found = self._keys.get_by_kid(kid, {"alg": algorithm, "use": "sig"})
        except JoseError:
            return None
        return cast("PublicKey", found)

    async def _fetch_again(self) -> None:
        """Wait for a fetch, unless the last one was a moment ago."""
        self._begin()
        if self._fetching:
            # Shared by all who wait: one of them who gives up must not end it for the others.
            await asyncio.shield(self._fetching)

    def _begin(self) -> None:
        pause = RETRY_SECONDS if self._keys else FIRST_SECONDS
        if self._fetching is None and self._clock() - self._tried >= pause:
            self._fetching = asyncio.create_task(self._fetch_now())
            self._fetching.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._fetching = None

    async def _fetch_now(self) -> None:
        self._tried = self._clock()
        try:
            self._keys = key_set(await self._fetch())
        except TokensUncheckable as error:
            self._failed = str(error)
            logger.warning("the keys of the authorization server could not be fetched: %s", error)
            return
        self._failed, self._fetched = "", self._clock()


def key_set(document: Mapping[str, Any]) -> KeySet:
    """Return the keys of *document* that signatures can be checked with; others are left out.

    Raises:
        TokensUncheckable: It is not a JWK set, or has none.
    """
    listed = document.get("keys")
    if not isinstance(listed, list):
        raise TokensUncheckable("the authorization server's keys are not a JWK set")
    keys = [key for data in cast("list[Any]", listed)[:MAX_KEYS] if (key := _public_key(data))]
    if not keys:
        raise TokensUncheckable("the authorization server publishes no key that can be used")
    return KeySet([*keys])


def _public_key(data: Any) -> PublicKey | None:
    if not isinstance(data, dict):
        return None
    told = cast("dict[str, Any]", data)
    kind = KINDS.get(str(told.get("kty")))
    too_short = kind is RSAKey and len(str(told.get("n"))) < MODULUS_LENGTH
    if kind is None or too_short or told.get("use", "sig") != "sig":
        return None
    try:
        return kind.import_key(told)
    except (JoseError, ValueError, TypeError, KeyError) as error:
        logger.warning("a key of the authorization server cannot be used: %s", error)
        return None
