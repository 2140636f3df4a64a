"""Plain values as JSON types and back: what JSON has no type for is written ``{"$ot": kind, "v": ...}``.

For plain values ``decode(encode(v)) == v``, with equal types. What a tool returns may also be

- of a subclass of a plain type (a named tuple, a defaultdict): it crosses as the plain type;
- a dataclass (its fields as a dict), an object with ``model_dump()`` (what that returns), an ``Enum`` (its value);
- a path (its text), a ``bytearray`` or ``memoryview`` (bytes), another mapping (a dict);
- an iterator, a range, a deque, a dict's keys, values or items (a list).

Everything else is refused with ``NotPlain``.
"""

from __future__ import annotations

import math
import os
import re
from base64 import b64decode, b64encode
from collections import Counter, deque
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from io import IOBase
from typing import Any, ClassVar, cast

from ot_sdk.converter import MAX_DEPTH, MAX_NODES, Converter, Rule, kind_of
from ot_sdk.errors import NotPlain
from ot_sdk.redaction import free_name

__all__ = ["MAX_DEPTH", "MAX_NODES", "TAG", "Decoder", "Encoder", "decode", "encode", "has_plain_keys", "is_listable"]

TAG = "$ot"
SMALLEST = -(1 << 63)
LARGEST = (1 << 64) - 1
"""Ints between these are taken as they are by any reader of JSON."""
MAX_ALIKE = 50
"""Different keys that may have one hash: numbers can be chosen so that all have."""
LONE = "surrogatepass"
"""How UTF-8 is stretched to hold the lone half of a surrogate pair."""

TEXT = frozenset({str})
SURROGATES = re.compile("[\ud800-\udfff]")
INT = re.compile(r"-?0x[0-9a-f]+")
FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}

Tagged = dict[str, Any]


def encode(value: Any, *, max_nodes: int = MAX_NODES) -> Any:
    """Return *value* as JSON types.

    Raises:
        NotPlain: Some part of it is not plain data, or it is too deep or too large.
    """
    return Encoder(max_nodes=max_nodes).convert(value)


def decode(encoded: Any, *, max_nodes: int = MAX_NODES) -> Any:
    """Return the value that *encoded*, made of JSON types, stands for.

    Raises:
        ValueError: A tag is malformed, or the value is too deep or too large.
    """
    return Decoder(max_nodes).convert(encoded)


def tagged(kind: str, value: Any) -> Tagged:
    """Return the tagged form of *value*, whose type JSON does not have."""
    return {TAG: kind, "v": value}


def has_plain_keys(value: Mapping[Any, Any]) -> bool:
    """True when *value* can be a JSON object as it is."""
    keys = value.keys()
    if not TEXT.issuperset(map(type, keys)) or TAG in keys:
        return False
    return all(map(str.isascii, keys)) or all(map(is_unicode, keys))


def is_unicode(text: str) -> bool:
    """True when UTF-8 can hold *text*; a lone half of a surrogate pair cannot be written."""
    return SURROGATES.search(text) is None


def is_listable(value: Any) -> bool:
    """Whether *value* crosses as a list although it is not one."""
    # An open file is an iterator too; returning one is a slip, and reading it whole would hide that.
    return isinstance(value, LISTED) and not isinstance(value, IOBase)


# ---------------------------------------------------------------- values to tagged JSON


class Encoder(Converter):
    """Encodes one value, counting what it holds."""

    def __init__(
        self,
        *,
        max_nodes: int = MAX_NODES,
        redact: Callable[[str], str] | None = None,
        redact_bytes: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Pass every text through *redact* and all bytes through *redact_bytes*, where given."""
        super().__init__(max_nodes)
        self._redact = redact
        self._redact_bytes = redact_bytes

    def part(self, key: object, value: Any, depth: int = 1) -> Any:
        """Return *value*, which stands under *key* in its container, as JSON types."""
        try:
            return self.convert(value, depth)
        except NotPlain as error:
            error.within(key)
            raise

    def mapping(self, value: Mapping[Any, Any], depth: int) -> Tagged:
        """Return *value* as a JSON object, or as tagged pairs where its keys ask for that."""
        self.check_depth(value, depth)
        if not has_plain_keys(value):
            return tagged("dict", [self.pair(key, item, depth) for key, item in value.items()])
        key: Any = None
        encoded: Tagged = {}
        try:
            for key, item in value.items():
                encoded[free_name(self.redact(key), encoded)] = self.convert(item, depth + 1)
        except NotPlain as error:
            error.within(key)
            raise
        return encoded

    def pair(self, key: Any, item: Any, depth: int) -> list[Any]:
        """Return a key that is not text, and its value."""
        try:
            name = self.convert(key, depth + 1)
            if not _is_hashable(name):
                raise NotPlain("", f"a key of type {type(key).__name__}")
            return [name, self.convert(item, depth + 1)]
        except NotPlain as error:
            error.within(key)
            raise

    def members(self, value: Iterable[Any], depth: int, kind: str) -> Any:
        """Return the elements of a set: tagged, or as a list when they have become dicts or lists on the way."""
        items = self.elements(value, depth)
        return tagged(kind, items) if all(map(_is_hashable, items)) else items

    def text(self, value: str, _depth: int = 0) -> Any:
        """Return a text, which is tagged when UTF-8 cannot hold it."""
        text = self.redact(value)
        return text if text.isascii() or is_unicode(text) else tagged("str", _b64(text.encode(errors=LONE)))

    def data(self, value: bytes) -> Tagged:
        """Return bytes as tagged base64."""
        return tagged("bytes", _b64(self.redact_bytes(value)))

    def redact(self, text: str) -> str:
        """Return *text* without what must not leave."""
        return text if self._redact is None else self._redact(text)

    def redact_bytes(self, data: bytes) -> bytes:
        """Return *data* without what must not leave."""
        return data if self._redact_bytes is None else self._redact_bytes(data)

    def other(self, value: Any, depth: int) -> Any:
        """Return a value whose exact type is not plain as JSON types."""
        kind = kind_of(value)
        if isinstance(value, Enum):
            return self.convert(value.value, depth + 1)
        if hasattr(kind, "__dataclass_fields__"):
            from dataclasses import fields  # noqa: PLC0415 - costs a third of a worker's start; here it is loaded already

            return self.mapping({field.name: getattr(value, field.name) for field in fields(value)}, depth)
        if callable(getattr(kind, "model_dump", None)):
            return self.convert(value.model_dump(), depth + 1)
        for base, write in BASES:
            if isinstance(value, base):
                return write(self, value, depth)
        if isinstance(value, os.PathLike):
            return self.convert(os.fspath(cast("os.PathLike[Any]", value)), depth + 1)
        if isinstance(value, Mapping):
            return self.mapping(cast("Mapping[Any, Any]", value), depth)
        return self.elements(value, depth) if is_listable(value) else super().other(value, depth)

    rules: ClassVar[Mapping[type, Rule | None]] = {
        type(None): None,
        bool: None,
        str: text,
        int: lambda _encoder, value, _depth: value if SMALLEST <= value <= LARGEST else tagged("int", hex(value)),
        float: lambda _encoder, value, _depth: value if math.isfinite(value) else tagged("float", repr(value)),
        list: Converter.elements,
        dict: mapping,
        tuple: lambda encoder, value, depth: tagged("tuple", encoder.elements(value, depth)),
        set: lambda encoder, value, depth: encoder.members(value, depth, "set"),
        frozenset: lambda encoder, value, depth: encoder.members(value, depth, "frozenset"),
        bytes: lambda encoder, value, _depth: encoder.data(value),
        datetime: lambda _encoder, value, _depth: tagged("datetime", datetime.isoformat(value)),
        date: lambda _encoder, value, _depth: tagged("date", date.isoformat(value)),
        time: lambda _encoder, value, _depth: tagged("time", time.isoformat(value)),
        timedelta: lambda _encoder, value, _depth: tagged("timedelta", [value.days, value.seconds, value.microseconds]),
        Decimal: lambda _encoder, value, _depth: tagged("decimal", Decimal.__str__(value)),
    }


LISTED = (Iterator, range, deque, KeysView, ValuesView, ItemsView)
BASES: tuple[tuple[type, Rule], ...] = (
    # A subclass's own text is not used: it may say anything.
    (str, lambda encoder, value, depth: encoder.convert(str.__str__(value), depth)),
    (int, lambda encoder, value, depth: encoder.convert(int.__int__(value), depth)),
    (float, lambda encoder, value, depth: encoder.convert(float.__float__(value), depth)),
    *((kind, rule) for kind, rule in Encoder.rules.items() if rule and kind not in (str, int, float)),
    (bytearray, lambda encoder, value, _depth: encoder.data(bytes(value))),
    (memoryview, lambda encoder, value, _depth: encoder.data(bytes(value))),
)
"""How a value of a subclass of a plain type is written."""


def _b64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _is_hashable(encoded: Any) -> bool:
    if not isinstance(encoded, dict):
        return not isinstance(encoded, list)
    found = cast("Tagged", encoded)
    kind = found.get(TAG)
    return all(map(_is_hashable, found["v"])) if kind == "tuple" else kind not in (None, "dict", "set")


# ---------------------------------------------------------------- tagged JSON to values


class Decoder(Converter):
    """Decodes one value, counting what it holds."""

    def decode_list(self, encoded: Any, depth: int) -> list[Any]:
        """Return the decoded elements of a tag's list."""
        if not isinstance(encoded, list):
            raise ValueError("a tag of several values does not hold a list")
        return self.elements(cast("list[Any]", encoded), depth)

    def pairs(self, encoded: Any, depth: int) -> dict[Any, Any]:
        """Return the dict that a list of pairs stands for."""
        self.check_depth(encoded, depth)
        keys: list[Any] = []
        items: list[Any] = []
        for pair in encoded:
            if not isinstance(pair, list):
                raise ValueError("a tagged dict does not hold pairs")
            key, item = cast("list[Any]", pair)
            keys.append(self.convert(key, depth + 1))
            items.append(self.convert(item, depth + 1))
        decoded = dict(zip(spread(keys), items, strict=True))
        if len(decoded) != len(encoded):
            raise ValueError("a tagged dict holds a key twice")
        return decoded

    def mapping(self, found: Mapping[str, Any], depth: int) -> Any:
        """Return the dict or the tagged value that a JSON object stands for."""
        if TAG in found:
            return self._decode_tag(found, depth)
        self.check_depth(found, depth)
        return {key: self.convert(item, depth + 1) for key, item in found.items()}

    def _decode_tag(self, found: Mapping[str, Any], depth: int) -> Any:
        kind = found[TAG]
        read = READERS.get(kind) if isinstance(kind, str) else None
        if read is None or set(found) != {TAG, "v"}:
            shown = kind[:50] if isinstance(kind, str) else type(kind).__name__
            raise ValueError(f"no value is tagged {shown!r}, or the tag is malformed")
        try:
            return read(self, found["v"], depth)
        except (TypeError, ArithmeticError, LookupError) as error:
            raise ValueError(f"the tag {kind!r} does not hold what it should") from error

    def other(self, value: Any, depth: int) -> Any:
        """Return the value: JSON has no other containers."""
        return value

    def too_deep(self, value: Any) -> Exception:
        """Return the error for a value that is nested too deeply."""
        return ValueError(f"the value is nested more than {MAX_DEPTH} levels deep")

    def too_many(self, value: Any) -> Exception:
        """Return the error for a value that holds too many parts."""
        return ValueError("the value holds too many parts")

    rules: ClassVar[Mapping[type, Rule | None]] = {
        **dict.fromkeys((type(None), bool, int, float, str)),
        list: Converter.elements,
        dict: mapping,
    }


def spread(keys: list[Any]) -> list[Any]:
    """Return *keys* when a set or dict of them is made in little time.

    Raises:
        ValueError: So many have the same hash that it would take the square of their number.
    """
    if len(keys) > MAX_ALIKE and max(Counter(map(hash, keys)).values()) > MAX_ALIKE:
        raise ValueError("too many keys have the same hash")
    return keys


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


READERS: Mapping[str, Rule] = {
    "str": lambda _decoder, value, _depth: b64decode(value, validate=True).decode(errors=LONE),
    "tuple": lambda decoder, value, depth: tuple(decoder.decode_list(value, depth)),
    "set": lambda decoder, value, depth: set(spread(decoder.decode_list(value, depth))),
    "frozenset": lambda decoder, value, depth: frozenset(spread(decoder.decode_list(value, depth))),
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
