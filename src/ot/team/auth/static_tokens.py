"""StaticTokens: people and programs that the operator gave a token, of which only the hash is kept."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping

from ot.config.team_settings import StaticToken
from ot.team.auth.granted_scopes import all_scopes
from ot.team.identity import Identity, TokenRefused

PREFIX = "otk_"
"""What every token of ours begins with: scanners of repositories find it, and so does our own log."""
RANDOM_BYTES = 32


def new_token() -> str:
    """Return a token that nobody can guess."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def token_hash(token: str) -> str:
    """Return what is kept of *token*.

    A plain hash is right here: slow ones and salts protect what people choose, and these are 256 random bits.
    """
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"


def is_static(token: str) -> bool:
    """Return whether *token* claims to be one of ours; those are never sent to an authorization server."""
    return token.startswith(PREFIX)


class StaticTokens:
    """Knows everyone whom the operator gave a token."""

    def __init__(self, known: Mapping[str, StaticToken]) -> None:
        """Accept the tokens of *known*, by name."""
        self._known = [(entry.hash.encode(), _identity(name, entry)) for name, entry in known.items()]

    async def identify(self, token: str) -> Identity:
        """Return whose *token* it is.

        Raises:
            TokenRefused: Nobody's.
        """
        shown = token_hash(token).encode()
        # All are compared, each in constant time: how long it takes tells nothing about the tokens.
        found = [identity for kept, identity in self._known if hmac.compare_digest(kept, shown)]
        if not found:
            raise TokenRefused("the token is unknown")
        return found[0]

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


def _identity(name: str, entry: StaticToken) -> Identity:
    return Identity(f"token|{name}", name, all_scopes(entry.scopes), frozenset(entry.groups))
