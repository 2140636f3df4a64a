"""StaticTokens: people and programs that the operator gave a token, of which only the hash is kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping

from onetool_team.auth.granted_scopes import all_scopes
from onetool_team.identity import Identity, TokenRefused
from onetool_team.settings import StaticToken

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
        # Looked up by hash: how long that takes tells about hashes of tokens, from which none can be guessed.
        self._known = {entry.hash: (name, entry) for name, entry in known.items()}

    async def identify(self, token: str) -> Identity:
        """Return whose *token* it is.

        Raises:
            TokenRefused: Nobody's.
        """
        if not (found := self._known.get(token_hash(token))):
            raise TokenRefused("the token is unknown")
        return _identity(*found)


def _identity(name: str, entry: StaticToken) -> Identity:
    return Identity(f"token|{name}", name, all_scopes(entry.scopes), frozenset(entry.groups))
