"""PostgresPlace: what the ledger in PostgreSQL calls things, and what seals them."""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import Any

import orjson

from onetool_team.state.state_keys import NotSealed, StateKeys

LONGEST_ID = 200


class PostgresPlace:
    """Names and seals: who, which tool, when and how it ended can be read by an operator, and nothing else."""

    def __init__(self, keys: StateKeys) -> None:
        """Use *keys*, which all processes have."""
        self.fingerprint_keys = keys.derive("ledger/fingerprint")
        self._keys = keys

    def who(self, principal: str) -> bytes:
        """Return what stands for a principal."""
        return bytes.fromhex(self._keys.hide(principal))

    @staticmethod
    def name(id: str) -> str:
        """Return what stands for *id*, which may come from outside: itself, if it can be kept as it is."""
        is_plain = len(id) <= LONGEST_ID and id.isprintable()
        return id if is_plain else hashlib.sha256(id.encode(errors="surrogatepass")).hexdigest()

    @staticmethod
    def text(text: str) -> str:
        """Return *text* without what PostgreSQL cannot keep."""
        return text.replace("\0", "").encode(errors="replace").decode()

    def seal(self, place: str, value: Any) -> bytes:
        """Return plain data sealed for *place*: moved elsewhere, it does not open. What is sealed does not shrink."""
        return base64.urlsafe_b64decode(self._keys.seal(place, zlib.compress(orjson.dumps(value), 1)))

    def try_unseal(self, place: str, sealed: bytes | None) -> Any:
        """Return what was sealed for *place*, or nothing where nothing of ours is."""
        try:
            return orjson.loads(zlib.decompress(self._keys.unseal(place, base64.urlsafe_b64encode(sealed or b""))))
        except (NotSealed, zlib.error, ValueError):
            return None
