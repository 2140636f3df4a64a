"""StateKeys: seals what goes into the shared state, so that whoever can write there can forge nothing of it."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import Self

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SHORTEST_KEY = 32


class NotSealed(Exception):
    """A value was not sealed with our keys, not for this place, or too long ago."""


class StateKeys:
    """The secrets of ``state.keys``, the newest first: that one seals, all of them open."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Take *keys*, of at least 32 characters each.

        Raises:
            ValueError: There is none, or one is too short.
        """
        if not keys or any(len(key) < SHORTEST_KEY for key in keys):
            raise ValueError(f"a key has at least {SHORTEST_KEY} characters")
        self._keys = tuple(key.encode() for key in keys)

    @classmethod
    def ephemeral(cls) -> Self:
        """Return keys that end with this process."""
        return cls([secrets.token_hex(32)])

    def derive(self, purpose: str) -> list[bytes]:
        """Return a key of 32 bytes for *purpose* from each secret, the newest first."""
        return [HKDF(SHA256(), 32, salt=None, info=f"onetool/{purpose}".encode()).derive(key) for key in self._keys]

    def hide(self, name: str) -> str:
        """Return what stands for *name* where others can read: without the keys nobody can try names out.

        It is made with the oldest secret, so that a new one in front of it changes no name.
        """
        return hmac.digest(self._naming_key, name.encode(errors="surrogatepass"), "sha256").hex()[:32]

    @cached_property
    def _naming_key(self) -> bytes:
        return self.derive("names")[-1]

    def seal(self, place: str, data: bytes) -> bytes:
        """Return *data* encrypted for *place*: moved elsewhere, it does not open."""
        return self._fernet(place).encrypt(data)

    def unseal(self, place: str, sealed: bytes, seconds: int | None = None) -> bytes:
        """Return what was sealed for *place*, at most *seconds* ago.

        Raises:
            NotSealed: It was not.
        """
        try:
            return self._fernet(place).decrypt(sealed, ttl=seconds)
        except InvalidToken:
            raise NotSealed(f"the value at {place} was not written with state.keys") from None

    def _fernet(self, place: str) -> MultiFernet:
        return MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in self.derive(f"sealed/{place}")])
