"""Identity: who showed a token, and the seam behind which tokens are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

type BearerError = Literal["invalid_token", "insufficient_scope"]
"""The codes of RFC 6750."""

SCOPE_KEY = "onetool.identity"
"""Where a request's ASGI scope holds the identity of whoever sent it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, as the token says it."""

    principal: str
    """``<issuer>|<subject>``, or ``token|<name>``: whose things are used."""
    name: str
    """For people to read."""
    scopes: frozenset[str] = frozenset({"run"})
    groups: frozenset[str] = frozenset()


class TokenRefused(Exception):
    """The token is not good, or not for this; the text says why and is for the client."""

    def __init__(self, why: str, error: BearerError = "invalid_token") -> None:
        """Refuse because of *why*; *error* is the code for it."""
        super().__init__(why)
        self.error: BearerError = error


class TokensUncheckable(Exception):
    """Nothing can be said about the token now: what would tell is unreachable."""


class Authenticator(Protocol):
    """Tells who shows a token."""

    async def identify(self, token: str) -> Identity:
        """Return who showed *token*.

        Raises:
            TokenRefused: It is not good.
            TokensUncheckable: Try again later.
        """
        ...
