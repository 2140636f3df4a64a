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
from base64 import b64encode
from collections import deque
from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from io import IOBase
from typing import Any, cast

from ot_sdk.errors import NotPlain, TooDeep, TooMany
from ot_sdk.tagged_decode import LONE, MAX_DEPTH, MAX_NODES, TAG, decode

__all__ = ["MAX_DEPTH", "MAX_NODES", "TAG", "Encoder", "decode", "encode", "has_plain_keys", "is_listable", "kind_of"]

SMALLEST = -(1 << 63)
LARGEST = (1 << 64) - 1
"""Ints between these are taken as they are by any reader of JSON."""

TEXT = frozenset({str})
SURROGATES = re.compile("[\ud800-\udfff]")

Tagged = dict[str, Any]


def encode(value: Any, *, max_nodes: int = MAX_NODES) -> Any:
    """Return *value* as JSON types.

    Raises:
        NotPlain: Some part of it is no plain data, or it is too deep or too large.
    """
    return Encoder(max_nodes=max_nodes).encode(value)


class Encoder:
    """Encodes one value, counting what it holds."""

    def __init__(
        self,
        *,
        max_nodes: int = MAX_NODES,
        redact: Callable[[str], str] | None = None,
        redact_bytes: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Pass every text through *redact* and all bytes through *redact_bytes*, where given."""
        self._left = max_nodes
        self._redact = redact
        self._redact_bytes = redact_bytes

    def encode(self, value: Any, depth: int = 0) -> Any:
        """Return *value*, which lies inside *depth* containers, as JSON types."""
        self._left -= 1
        if self._left < 0:
            raise TooMany("", type(value).__name__)
        kind = kind_of(value)
        if kind is str:
            text = self.redacted(value)
            return text if text.isascii() or is_unicode(text) else tagged("str", _b64(text.encode(errors=LONE)))
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if SMALLEST <= value <= LARGEST else tagged("int", hex(value))
        if kind is float:
            return value if math.isfinite(value) else tagged("float", repr(value))
        write = WRITERS.get(kind) or _writer_of(value)
        if write is None:
            raise NotPlain("", kind.__name__)
        if depth > MAX_DEPTH:  # an object that stands for itself, for ever
            raise TooDeep("", kind.__name__)
        return write(self, value, depth)

    def part(self, key: object, value: Any, depth: int = 1) -> Any:
        """Return *value*, which stands under *key* in its container, as JSON types."""
        try:
            return self.encode(value, depth)
        except NotPlain as error:
            error.within(key)
            raise

    def elements(self, value: Iterable[Any], depth: int) -> list[Any]:
        """Return the elements of *value*, encoded."""
        if depth >= MAX_DEPTH:
            raise TooDeep("", type(value).__name__)
        key = 0
        encoded: list[Any] = []
        try:
            for item in value:
                encoded.append(self.encode(item, depth + 1))
                key += 1
        except NotPlain as error:
            error.within(key)
            raise
        return encoded

    def mapping(self, value: Mapping[Any, Any], depth: int) -> Tagged:
        """Return *value* as a JSON object, or as tagged pairs where its keys ask for that."""
        if depth >= MAX_DEPTH:
            raise TooDeep("", type(value).__name__)
        if not has_plain_keys(value):
            return tagged("dict", [self._pair(key, item, depth) for key, item in value.items()])
        key: Any = None
        encoded: Tagged = {}
        try:
            for key, item in value.items():
                name = self.redacted(key)
                # Two keys must not become one silently: without this, redacting could do it.
                encoded[name if name not in encoded else key] = self.encode(item, depth + 1)
        except NotPlain as error:
            error.within(key)
            raise
        return encoded

    def _pair(self, key: Any, item: Any, depth: int) -> list[Any]:
        try:
            name = self.encode(key, depth + 1)
            if not _is_hashable(name):
                raise NotPlain("", f"a key of type {type(key).__name__}")
            return [name, self.encode(item, depth + 1)]
        except NotPlain as error:
            error.within(key)
            raise

    def members(self, value: Iterable[Any], depth: int, kind: str) -> Any:
        """Return the elements of a set: tagged, or as a list when they have become dicts or lists on the way."""
        items = self.elements(value, depth)
        return tagged(kind, items) if all(map(_is_hashable, items)) else items

    def data(self, value: bytes) -> Tagged:
        """Return bytes as tagged base64."""
        return tagged("bytes", _b64(self.redacted_bytes(value)))

    def redacted(self, text: str) -> str:
        """Return *text* without what must not leave."""
        return text if self._redact is None else self._redact(text)

    def redacted_bytes(self, data: bytes) -> bytes:
        """Return *data* without what must not leave."""
        return data if self._redact_bytes is None else self._redact_bytes(data)


Write = Callable[[Encoder, Any, int], Any]


def kind_of(value: object) -> type:
    """Return the exact type of *value*, which cannot pretend to be of another."""
    return type(value)


def tagged(kind: str, value: Any) -> Tagged:
    """Return what stands for *value* of a type that JSON does not have."""
    return {TAG: kind, "v": value}


def has_plain_keys(value: Mapping[Any, Any]) -> bool:
    """True when *value* can be a JSON object as it is."""
    if not TEXT.issuperset(map(type, value)) or TAG in value:
        return False
    return all(map(str.isascii, value)) or all(map(is_unicode, value))


def is_unicode(text: str) -> bool:
    """True when UTF-8 can hold *text*; a lone half of a surrogate pair cannot be written."""
    return SURROGATES.search(text) is None


def _b64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def is_listable(value: Any) -> bool:
    """True when *value* crosses as a list though it is none."""
    # An open file is an iterator too; returning one is a slip, and reading it whole would hide that.
    return isinstance(value, LISTED) and not isinstance(value, IOBase)


def _is_hashable(encoded: Any) -> bool:
    if not isinstance(encoded, dict):
        return not isinstance(encoded, list)
    found = cast("Tagged", encoded)
    kind = found.get(TAG)
    return all(map(_is_hashable, found["v"])) if kind == "tuple" else kind not in (None, "dict", "set")


def _write_timedelta(_encoder: Encoder, value: timedelta, _depth: int) -> Tagged:
    return tagged("timedelta", [value.days, value.seconds, value.microseconds])


WRITERS: Mapping[type, Write] = {
    list: lambda encoder, value, depth: encoder.elements(value, depth),
    dict: lambda encoder, value, depth: encoder.mapping(value, depth),
    tuple: lambda encoder, value, depth: tagged("tuple", encoder.elements(value, depth)),
    set: lambda encoder, value, depth: encoder.members(value, depth, "set"),
    frozenset: lambda encoder, value, depth: encoder.members(value, depth, "frozenset"),
    bytes: lambda encoder, value, _depth: encoder.data(value),
    datetime: lambda _encoder, value, _depth: tagged("datetime", datetime.isoformat(value)),
    date: lambda _encoder, value, _depth: tagged("date", date.isoformat(value)),
    time: lambda _encoder, value, _depth: tagged("time", time.isoformat(value)),
    timedelta: _write_timedelta,
    Decimal: lambda _encoder, value, _depth: tagged("decimal", Decimal.__str__(value)),
}
LISTED = (Iterator, range, deque, KeysView, ValuesView, ItemsView)
BASES: tuple[tuple[type, Write], ...] = (
    # A subclass's own text is not used: it may say anything.
    (str, lambda encoder, value, depth: encoder.encode(str.__str__(value), depth)),
    (int, lambda encoder, value, depth: encoder.encode(int.__int__(value), depth)),
    (float, lambda encoder, value, depth: encoder.encode(float.__float__(value), depth)),
    *((base, WRITERS[base]) for base in (dict, list, tuple, set, frozenset, bytes, datetime, date, time, timedelta)),
    (Decimal, WRITERS[Decimal]),
    (bytearray, lambda encoder, value, _depth: encoder.data(bytes(value))),
    (memoryview, lambda encoder, value, _depth: encoder.data(bytes(value))),
    (os.PathLike, lambda encoder, value, depth: encoder.encode(os.fspath(value), depth + 1)),
    (Mapping, lambda encoder, value, depth: encoder.mapping(value, depth)),
)


def _writer_of(value: Any) -> Write | None:
    """Return how to write a value whose exact type is not plain, or nothing."""
    if isinstance(value, Enum):
        return lambda encoder, value, depth: encoder.encode(value.value, depth + 1)
    kind = kind_of(value)
    if hasattr(kind, "__dataclass_fields__"):
        return _write_dataclass
    if callable(getattr(kind, "model_dump", None)):
        return lambda encoder, value, depth: encoder.encode(value.model_dump(), depth + 1)
    for base, write in BASES:
        if isinstance(value, base):
            return write
    return (lambda encoder, value, depth: encoder.elements(value, depth)) if is_listable(value) else None


def _write_dataclass(encoder: Encoder, value: Any, depth: int) -> Tagged:
    from dataclasses import fields  # noqa: PLC0415 - costs a third of a worker's start; here it is loaded already

    return encoder.mapping({field.name: getattr(value, field.name) for field in fields(value)}, depth)
