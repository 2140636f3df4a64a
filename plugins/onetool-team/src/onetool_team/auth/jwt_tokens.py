"""JwtTokens: access tokens that an authorization server signed, checked with its public keys."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from joserfc.errors import ExpiredTokenError, InvalidClaimError, JoseError, MissingClaimError
from joserfc.jws import CompactSignature, JWSRegistry, extract_compact, validate_compact
from joserfc.jwt import JWTClaimsRegistry

from onetool_team.auth.claimed_identity import identity_of, is_for
from onetool_team.auth.issuer_keys import IssuerKeys, PublicKey
from onetool_team.identity import Identity, TokenRefused
from onetool_team.kept_answers import KeptAnswers, digest_of
from onetool_team.settings import AccessTokens

ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519",
)  # fmt: skip
"""Signatures by a private key alone: no ``none``, and no HMAC, for which a public key would do as the secret."""
TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
MALFORMED = "the token is malformed"
KEPT_SECONDS = 60.0
"""How long a token that was good is not checked again, unless its key changes or it expires."""


class _Registry(JWSRegistry):
    """Reads headers that also hold what is ignored here: keys and certificates that a token brings along."""

    max_header_length = 8 << 10


@dataclass(frozen=True, slots=True)
class _Checked:
    """A token that was good, and the key that said so."""

    kid: str | None
    algorithm: str
    key: PublicKey
    identity: Identity


class JwtTokens:
    """Checks signature, issuer, audience and times of a token."""

    def __init__(
        self, oauth: AccessTokens, audience: str, keys: IssuerKeys, *, clock: Callable[[], float] = time.time
    ) -> None:
        """Accept tokens of the issuer of *oauth* for *audience*, signed with one of *keys*."""
        self._oauth = oauth
        self._audience = audience
        self._keys = keys
        self._clock = clock
        self._kept = KeptAnswers[_Checked](clock)
        self._registry = _Registry(algorithms=ALGORITHMS, strict_check_header=False)
        self._claims = JWTClaimsRegistry(
            now=lambda: int(clock()),
            leeway=int(oauth.leeway_seconds),
            iss={"essential": True, "value": oauth.issuer},
            aud={"essential": True},
            exp={"essential": True},
            sub={"essential": True},
        )

    async def identify(self, token: str) -> Identity:
        """Return whom *token* is about.

        Raises:
            TokenRefused: It is not good, or not for this server.
            TokensUncheckable: The key that it names cannot be fetched now.
        """
        digest = digest_of(token)
        known = self._kept.get(digest)
        # A key that was withdrawn since then, or fetched again, vouches for nothing.
        if known and await self._keys.find(known.kid, known.algorithm) is known.key:
            return known.identity
        signed = self._extract(token)
        header = signed.headers()
        key = await self._keys.find(header.get("kid"), header["alg"])
        self._require_signature(signed, key)
        claims = self._check_claims(_claims(signed.payload))
        identity = identity_of(claims, self._oauth)
        until = min(self._clock() + KEPT_SECONDS, claims["exp"] + self._oauth.leeway_seconds)
        self._kept.put(digest, _Checked(header.get("kid"), header["alg"], key, identity), until)
        return identity

    async def aclose(self) -> None:
        """End a fetch of keys."""
        await self._keys.aclose()

    def _require_signature(self, signed: CompactSignature, key: PublicKey) -> None:
        try:
            good = validate_compact(signed, key, registry=self._registry)
        except (JoseError, ValueError) as error:
            raise TokenRefused("the token's signature cannot be checked") from error
        if not good:
            raise TokenRefused("the token's signature is wrong")

    def _extract(self, token: str) -> CompactSignature:
        """Return the parts of *token* once its header is one that is understood, before any key is sought."""
        try:
            signed = extract_compact(token.encode("ascii"), registry=self._registry)
            header = signed.protected
            if not isinstance(header, dict) or "crit" in header:  # pyright: ignore[reportUnnecessaryIsInstance] - as sent
                raise TokenRefused(MALFORMED)
            self._registry.check_header(header)
            self._registry.get_alg(header["alg"])
        except (JoseError, ValueError, TypeError, RecursionError) as error:
            raise TokenRefused(MALFORMED) from error
        if str(header.get("typ", "")).lower() not in TYPES:
            raise TokenRefused("the token is not an access token")
        return signed

    def _check_claims(self, claims: dict[str, Any]) -> Mapping[str, Any]:
        try:
            self._claims.validate(claims)
        except ExpiredTokenError:
            raise TokenRefused("the token has expired") from None
        except (InvalidClaimError, MissingClaimError) as error:
            raise TokenRefused(f"the token is refused: {error.description}") from None
        if not is_for(claims["aud"], self._audience):
            raise TokenRefused("the token is for another audience")
        return claims


def _claims(payload: bytes | None) -> dict[str, Any]:
    try:
        found: Any = json.loads(payload or b"", object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise TokenRefused(MALFORMED) from None
    if not isinstance(found, dict):
        raise TokenRefused(MALFORMED)
    return cast("dict[str, Any]", found)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return *pairs* as a mapping; whoever reads a claim that is there twice may see either."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a claim appears twice")
    return found
