"""Fingerprints: whether two calls are the same, by their tool and arguments, without keeping the arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from ot_sdk import tagged
from ot_sdk.errors import NotPlain

SIZE = 16
SAME_CALL_SECONDS = 24 * 3600.0
"""How long the same call is remembered whose effect is unknown."""


def fingerprint(tool: str, arguments: Mapping[str, Any], key: bytes) -> str:
    """Return the fingerprint of *tool* with these *arguments*; nobody without *key* can guess arguments from it."""
    hashed = hashlib.blake2b(tool.encode(errors="surrogatepass") + b"\0", digest_size=SIZE, key=key)
    hashed.update(_canonical(arguments))
    return hashed.hexdigest()


def _canonical(arguments: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(tagged.encode(dict(arguments)), option=orjson.OPT_SORT_KEYS)
    except (NotPlain, TypeError, ValueError):
        # Anything else is compared by its text: equal texts count as the same call, which errs on the safe side.
        return repr(sorted(arguments.items(), key=lambda item: item[0])).encode(errors="surrogatepass")
