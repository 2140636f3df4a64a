"""JsonPieces: a value's tagged JSON a part at a time, so that a large one is never in memory twice."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ot_sdk import tagged
from ot_sdk.errors import NotPlain, TooDeep
from ot_sdk.tagged import MAX_DEPTH, Encoder
from ot_sdk.wire import to_json, to_json_lines

SLICE = 3 << 18
"""Characters or bytes of a long text that are written at once; a multiple of three, as base64 wants it."""
BATCH = 1 << 13
"""Bytes, roughly, of small elements that are written together."""

NewEncoder = Callable[[], Encoder]


class JsonPieces:
    """Writes values with the encoders that it is given, a new one for each part."""

    def __init__(self, encoder: NewEncoder) -> None:
        self._encoder = encoder

    def of(self, value: Any, depth: int = 0, between: bytes = b",\n") -> Iterator[bytes]:
        """Yield the tagged JSON of *value*, with *between* between its elements or entries.

        Raises:
            NotPlain: As ``tagged.encode``.
        """
        kind = tagged.kind_of(value)
        if kind is list or tagged.is_listable(value):
            yield from self._elements(value, depth, between, b"[", b"]")
        elif kind is tuple:
            yield from self._elements(value, depth, between, b'{"$ot":"tuple","v":[', b"]}")
        elif kind is dict and tagged.has_plain_keys(value):
            yield from self._entries(value, depth, between)
        elif kind is str and len(value) > SLICE and tagged.is_unicode(value):
            yield from self._text(self._encoder().redacted(value))
        elif kind is bytes and len(value) > SLICE:
            yield from self._bytes(self._encoder().redacted_bytes(value))
        else:
            yield to_json(self._encoder().encode(value, depth))

    def _elements(self, value: Any, depth: int, between: bytes, opening: bytes, closing: bytes) -> Iterator[bytes]:
        _check(value, depth)
        yield opening
        before = b""
        for number, batch in _batches(value):
            yield before
            before = between
            if len(batch) == 1 and _weight(batch[0]) >= BATCH:
                yield from self._below(number, batch[0], depth)
            else:
                encoder = self._encoder()
                yield to_json_lines([encoder.part(n, item, depth + 1) for n, item in enumerate(batch, number)], between)
        yield closing

    def _entries(self, value: Any, depth: int, between: bytes) -> Iterator[bytes]:
        _check(value, depth)
        before = b"{"
        for key, item in value.items():
            name = before + to_json(self._encoder().redacted(key)) + b":"
            before = between
            if _weight(item) >= BATCH:
                yield name
                yield from self._below(key, item, depth)
            else:
                yield name + to_json(self._encoder().part(key, item, depth + 1))
        yield b"}" if value else b"{}"

    def _below(self, key: object, item: Any, depth: int) -> Iterator[bytes]:
        try:
            yield from self.of(item, depth + 1, b",")
        except NotPlain as error:
            error.within(key)
            raise

    def _text(self, text: str) -> Iterator[bytes]:
        yield b'"'
        yield from (to_json(part)[1:-1] for part in _slices(text))
        yield b'"'

    def _bytes(self, data: bytes) -> Iterator[bytes]:
        yield b'{"$ot":"bytes","v":"'
        yield from map(b64encode, _slices(data))
        yield b'"}'


def _check(container: Any, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise TooDeep("", tagged.kind_of(container).__name__)


def _slices(value: Any) -> Iterator[Any]:
    return (value[start : start + SLICE] for start in range(0, len(value), SLICE))


def _batches(value: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield elements with the number of their first: small ones as many as are quickest together, a large one alone."""
    batch: list[Any] = []
    first = size = 0
    for item in value:
        weight = _weight(item)
        if batch and size + weight >= BATCH:
            yield first, batch
            first, size, batch = first + len(batch), 0, []
        batch.append(item)
        size += weight
    if batch:
        yield first, batch


def _weight(item: Any) -> int:
    """Return the rough size of *item* in bytes, from a look at it and at what it holds."""
    kind = tagged.kind_of(item)
    if kind is str or kind is bytes:
        return 8 + len(item)
    if kind is dict or kind is list or kind is tuple:
        if len(item) > BATCH:
            return BATCH
        return 8 + sum(map(_flat_weight, item.values() if kind is dict else item))
    return 8 if kind in SMALL else BATCH if tagged.is_listable(item) else BATCH // 64


def _flat_weight(item: Any) -> int:
    return 8 + len(item) if tagged.kind_of(item) in SIZED else 8


SMALL = frozenset({int, float, bool, type(None)})
SIZED = frozenset({str, bytes, list, dict, tuple})
