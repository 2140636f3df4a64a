"""The token of a server that only this machine can reach: made once, kept in the user's directory."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from onetool_team.identity import Identity, TokenRefused
from ot.config.principal import os_user
from ot.errors import ConfigError
from ot.files.private_file import hold_lock, read_regular, write_private

FILE = "http-token"
PREFIX = "otl_"
LEAST = 32
REFUSED = "the token is not the one of this server: it stands in the file that the server named when it started"


@dataclass(frozen=True)
class LoopbackToken:
    """Knows one token, which stands for the user of this process."""

    token: str
    file: Path

    @classmethod
    def of(cls, directory: Path) -> LoopbackToken:
        """Return the token that is kept in *directory*, made now if there is none.

        Raises:
            ConfigError: The file cannot be used.
        """
        file = directory / FILE
        try:
            with hold_lock(file):
                return cls(_read_kept(file) or _make(file), file)
        except OSError as error:
            raise ConfigError(f"the server's token cannot be kept in {file}: {error}") from None

    async def identify(self, token: str) -> Identity:
        """Return the user of this process.

        Raises:
            TokenRefused: It is another token.
        """
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            raise TokenRefused(REFUSED)
        return Identity(os_user(), "local", frozenset({"run", "admin"}))


def _read_kept(file: Path) -> str:
    try:
        found = read_regular(file, 1000, follow=False)
    except FileNotFoundError:
        return ""
    token = found.data.decode("ascii", "replace").strip()
    if found.readable_by_others:
        raise ConfigError(f"others may read {file}, which holds the server's token", hint=f"remove it: rm {file}")
    if len(token) < LEAST:
        raise ConfigError(f"{file} holds no token of this server", hint=f"remove it: rm {file}")
    return token


def _make(file: Path) -> str:
    token = PREFIX + secrets.token_urlsafe(32)
    write_private(file, f"{token}\n")
    return token
