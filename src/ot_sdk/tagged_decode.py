"""Tagged JSON back to values."""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, cast

TAG = "$ot"
MAX_DEPTH = 64
"""How many containers may stand inside each other."""
MAX_NODES = 2_000_000
MAX_ALIKE = 50
"""Different keys that may have one hash: numbers can be chosen so that all have."""
LONE = "surrogatepass"
"""How UTF-8 is stretched to hold the lone half of a surrogate pair."""

INT = re.compile(r"-?0x[0-9a-f]+")
FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def decode(encoded: Any, *, max_nodes: int = MAX_NODES) -> Any:
    """Return the value that *encoded*, made of JSON types, stands for.

    Raises:
        ValueError: A tag is malformed, or the value is too deep or too large.
    """
    return Decoder(max_nodes).decode(encoded, 0)


class Decoder:
    """Decodes one value, counting what it holds."""

    def __init__(self, max_nodes: int) -> None:
        self._left = max_nodes

    def decode(self, encoded: Any, depth: int) -> Any:
        """Return the value of *encoded*, which lies inside *depth* containers."""
        self._left -= 1
        if self._left < 0:
            raise ValueError("the value holds too many parts")
        if isinstance(encoded, list):
            return self.elements(encoded, depth)
        if not isinstance(encoded, dict):
            return encoded
        found = cast("dict[str, Any]", encoded)
        if TAG in found:
            return self._tagged(found, depth)
        self._check(depth)
        return {key: self.decode(item, depth + 1) for key, item in found.items()}

    def elements(self, encoded: Any, depth: int) -> list[Any]:
        """Return the decoded elements of a JSON array."""
        self._check(depth)
        if not isinstance(encoded, list):
            raise ValueError("a tag of several values does not hold a list")
        return [self.decode(item, depth + 1) for item in cast("list[Any]", encoded)]

    def pairs(self, encoded: Any, depth: int) -> dict[Any, Any]:
        """Return the dict that a list of pairs stands for."""
        self._check(depth)
        keys: list[Any] = []
        items: list[Any] = []
        for pair in encoded:
            if not isinstance(pair, list):
                raise ValueError("a tagged dict does not hold pairs")
            key, item = cast("list[Any]", pair)
            keys.append(self.decode(key, depth + 1))
            items.append(self.decode(item, depth + 1))
        decoded = dict(zip(spread(keys), items, strict=True))
        if len(decoded) != len(encoded):
            raise ValueError("a tagged dict holds a key twice")
        return decoded

    def _tagged(self, found: Mapping[str, Any], depth: int) -> Any:
        kind = found[TAG]
        read = READERS.get(kind) if isinstance(kind, str) else None
        if read is None or set(found) != {TAG, "v"}:
            shown = kind[:50] if isinstance(kind, str) else type(kind).__name__
            raise ValueError(f"no value is tagged {shown!r}, or the tag is malformed")
        try:
            return read(self, found["v"], depth)
        except (TypeError, ArithmeticError, LookupError) as error:
            raise ValueError(f"the tag {kind!r} does not hold what it should") from error

    def _check(self, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise ValueError(f"the value is nested more than {MAX_DEPTH} levels deep")


def spread(keys: list[Any]) -> list[Any]:
    """Return *keys* when a set or dict of them is made in little time.

    Raises:
        ValueError: So many have the same hash that it would take the square of their number.
    """
    if len(keys) > MAX_ALIKE and max(Counter(map(hash, keys)).values()) > MAX_ALIKE:
        raise ValueError("too many keys have the same hash")
    return keys


Read = Callable[[Decoder, Any, int], Any]


def _read_int(_decoder: Decoder, text: Any, _depth: int) -> int:
    if not INT.fullmatch(text):
        raise ValueError("a tagged int is not hexadecimal")
    return int(text, 16)


def _read_timedelta(_decoder: Decoder, parts: Any, _depth: int) -> timedelta:
    days, seconds, microseconds = parts
    if not all(type(part) is int for part in parts):
        raise ValueError("a tagged timedelta does not hold whole numbers")
    return timedelta(days, seconds, microseconds)


def _read_decimal(_decoder: Decoder, text: Any, _depth: int) -> Decimal:
    if type(text) is not str:
        raise ValueError("a tagged decimal is not text")
    return Decimal(text)


READERS: Mapping[str, Read] = {
    "str": lambda _decoder, value, _depth: b64decode(value, validate=True).decode(errors=LONE),
    "tuple": lambda decoder, value, depth: tuple(decoder.elements(value, depth)),
    "set": lambda decoder, value, depth: set(spread(decoder.elements(value, depth))),
    "frozenset": lambda decoder, value, depth: frozenset(spread(decoder.elements(value, depth))),
    "dict": lambda decoder, value, depth: decoder.pairs(value, depth),
    "bytes": lambda _decoder, value, _depth: b64decode(value, validate=True),
    "int": _read_int,
    "float": lambda _decoder, value, _depth: FLOATS[value],
    "decimal": _read_decimal,
    "datetime": lambda _decoder, value, _depth: datetime.fromisoformat(value),
    "date": lambda _decoder, value, _depth: date.fromisoformat(value),
    "time": lambda _decoder, value, _depth: time.fromisoformat(value),
    "timedelta": _read_timedelta,
}
