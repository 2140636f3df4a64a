"""The keys that the authorization server of the tests signs access tokens with, and may change at any time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

type PrivateKey = RSAKey | ECKey | OKPKey

ALGORITHMS = {"RSA": "RS256", "EC": "ES256", "OKP": "Ed25519"}


@cache
def rsa_key(name: str) -> RSAKey:
    """Return a key of that name: to make one takes a moment, so all tests share it."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig"})


class SigningKeys:
    """Signs with its newest key, and publishes all of them."""

    def __init__(self) -> None:
        """Begin with one key."""
        self.keys: list[PrivateKey] = [rsa_key("first")]

    def add(self, name: str, kind: str = "EC") -> PrivateKey:
        """Return a new key, which signs from now on."""
        made = {
            "EC": lambda: ECKey.generate_key("P-256", {"kid": name, "use": "sig"}),
            "OKP": lambda: OKPKey.generate_key("Ed25519", {"kid": name, "use": "sig"}),
            "RSA": lambda: rsa_key(name),
        }[kind]()
        self.keys.append(made)
        return made

    def published(self) -> Mapping[str, Any]:
        """Return the public halves, as a JWK set."""
        return KeySet([*self.keys]).as_dict(private=False)

    def sign(self, claims: Mapping[str, Any], header: Mapping[str, Any] | None = None) -> str:
        """Return a token with *claims*; *header* is laid over the usual one."""
        key = self.keys[-1]
        algorithm = ALGORITHMS[key.key_type]
        head: dict[str, Any] = {"alg": algorithm, "typ": "at+jwt", "kid": key.kid, **(header or {})}
        return jwt.encode(head, dict(claims), key, algorithms=[head["alg"]])
