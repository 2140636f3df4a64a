"""KeyedHash: what stands for a principal or for arguments where they must not be read."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

import orjson

SIZE = 12
"""Bytes of a hash: none of a trillion is likely to be the same as another."""


class KeyedHash:
    """Hashes that nobody can guess back without the key, and that are equal for equal things."""

    def __init__(self, secret: str = "") -> None:
        """Take the key from *secret*, which replicas share; without one, hashes last as long as the process."""
        self._key = hashlib.blake2b(secret.encode(), person=b"onetool-telemet").digest()
        if not secret:
            self._key = secrets.token_bytes(64)

    def of_text(self, text: str) -> str:
        """Return the hash of *text*."""
        return self._hash(text.encode(errors="backslashreplace"))

    def of_arguments(self, arguments: Mapping[str, Any]) -> str:
        """Return the hash of a call's arguments, whatever their order."""
        return self._hash(_serialize(arguments))

    def _hash(self, data: bytes) -> str:
        return hashlib.blake2b(data, digest_size=SIZE, key=self._key).hexdigest()


def _serialize(arguments: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(arguments, default=repr, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # an unpaired surrogate, or a number beyond what it writes
        return json.dumps(arguments, default=repr).encode()
