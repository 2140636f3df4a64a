"""Replies: the results of calls as lines to be sent, or as a file and the line that names it.

The tagged JSON of a large value is written a part at a time, so that it is never in memory twice.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

from ot_sdk import tagged
from ot_sdk.converter import kind_of
from ot_sdk.errors import NotPlain, ResultTooLarge
from ot_sdk.failure import failure
from ot_sdk.secret import Redactor
from ot_sdk.spool import Spool
from ot_sdk.tagged import Encoder
from ot_sdk.wire import MAX_FRAME, to_frame, to_json, to_json_lines

ROOM = 4_096
"""What a message holds beside its value, at most."""
LITTLE = 1 << 15
"""Bytes, roughly, of a value that is a moment's work."""
JOINED = 1 << 16
"""Bytes of a piece that is not worth a copy."""
FIXED = frozenset({type(None), bool, float, datetime, date, time, timedelta, Decimal})
SMALL = frozenset({int, float, bool, type(None)})
SIZED = frozenset({str, bytes, list, dict, tuple})
SLICE = 3 << 18
"""Characters or bytes of a long text that are written at once; a multiple of three, as base64 wants it."""
BATCH = 1 << 13
"""Bytes, roughly, of small elements that are written together."""


class Replies:
    """Makes the replies of one worker."""

    def __init__(self, spool: Spool | None, spool_above: int, redactor: Redactor) -> None:
        self._spool = spool
        self._above = min(spool_above, MAX_FRAME - ROOM) if spool else MAX_FRAME - ROOM
        self._redactor = redactor

    def failure(self, id: str, error: BaseException) -> bytes:
        """Return the reply for a call that raised."""
        return to_frame(failure(id, error, self._redactor))

    def value(self, id: str, value: Any) -> bytes:
        """Return the reply for a call that returned; what it returned may still run code of the pack.

        Raises:
            NotPlain: The value cannot cross.
            ResultTooLarge: It is too large, and could not be put into a file either.
        """
        if is_little(value):
            encoded = to_json(self._new_encoder().convert(value))
            if len(encoded) <= self._above:
                return _reply(id, b'{"value":' + encoded + b"}")
        return self._large(id, value)

    def _large(self, id: str, value: Any) -> bytes:
        if isinstance(value, str) and len(value) > self._above:
            return self._spooled_text(id, value)
        pieces = self._pieces(value)
        held = _take(pieces, self._above)
        if sum(map(len, held)) <= self._above:
            # Line breaks stand between the parts only: inside JSON's own texts they are escaped.
            return _reply(id, b'{"value":' + b"".join(held).replace(b"\n", b"") + b"}")
        if isinstance(value, str):
            return self._spooled_text(id, value)
        return _reply(id, to_json(self._file().write(chain(held, pieces), form="json")))

    def _spooled_text(self, id: str, value: str) -> bytes:
        return _reply(id, to_json(self._file().text(self._redactor.text(value))))

    def _file(self) -> Spool:
        if self._spool is None:
            raise ResultTooLarge(f"the value is larger than {self._above:,} bytes: return less of it")
        return self._spool

    def _new_encoder(self) -> Encoder:
        if self._redactor.idle:
            return Encoder()
        return Encoder(redact=self._redactor.text, redact_bytes=self._redactor.data)

    def _pieces(self, value: Any) -> Iterator[bytes]:
        if self._spool is not None:
            return JsonPieces(self._new_encoder).of(value)
        # A file may hold as many parts as fit into it; those of a message are counted together.
        encoder = self._new_encoder()
        return JsonPieces(lambda: encoder).of(value)


def is_little(value: Any) -> bool:
    """True when *value* is plain and small, which is known after a short look at it."""
    left = LITTLE
    waiting = [value]
    while waiting:
        item = waiting.pop()
        left -= _own_size(item, waiting)
        if left < 0:
            return False
    return True


def _own_size(item: Any, waiting: list[Any]) -> int:
    kind = kind_of(item)
    if kind is str or kind is bytes:
        return len(item)
    if kind is int:
        return 8 + item.bit_length() // 8
    if kind in FIXED:
        return 8
    if kind is dict or kind is list or kind is tuple or kind is set or kind is frozenset:
        if len(item) <= LITTLE:
            waiting.extend(item)
            waiting.extend(item.values() if kind is dict else ())
        return 16 * len(item) + 16
    return LITTLE + 1


def _take(pieces: Iterator[bytes], size: int) -> list[bytes]:
    """Return the first of *pieces*, the small ones joined, until they are all or together larger than *size*."""
    held: list[bytes] = []
    small = bytearray()
    for piece in pieces:
        size -= len(piece)
        small += piece if len(piece) < JOINED else b""
        if len(piece) >= JOINED:
            held += [bytes(small), piece]
            small.clear()
        if size < 0:
            break
    return [*held, bytes(small)]


def _reply(id: str, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + to_json(id) + b',"result":' + result + b"}\n"


class JsonPieces:
    """Writes values with the encoders that it is given, a new one for each part."""

    def __init__(self, encoder: Callable[[], Encoder]) -> None:
        self._encoder = encoder

    def of(self, value: Any, depth: int = 0, between: bytes = b",\n") -> Iterator[bytes]:
        """Yield the tagged JSON of *value*, with *between* between its elements or entries.

        Raises:
            NotPlain: As ``tagged.encode``.
        """
        kind = kind_of(value)
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
            yield to_json(self._encoder().convert(value, depth))

    def _elements(self, value: Any, depth: int, between: bytes, opening: bytes, closing: bytes) -> Iterator[bytes]:
        self._encoder().check_depth(value, depth)
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
        self._encoder().check_depth(value, depth)
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
    kind = kind_of(item)
    if kind is str or kind is bytes:
        return 8 + len(item)
    if kind is dict or kind is list or kind is tuple:
        if len(item) > BATCH:
            return BATCH
        return 8 + sum(map(_flat_weight, item.values() if kind is dict else item))
    return 8 if kind in SMALL else BATCH if tagged.is_listable(item) else BATCH // 64


def _flat_weight(item: Any) -> int:
    return 8 + len(item) if type(item) in SIZED else 8
