"""Replies: a call's value as the line that is sent, or as a file and the line that names it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

from ot_sdk import tagged
from ot_sdk.errors import ResultTooLarge
from ot_sdk.failure import failure
from ot_sdk.json_pieces import JsonPieces
from ot_sdk.secret import Redactor
from ot_sdk.spool import Spool
from ot_sdk.tagged import Encoder
from ot_sdk.wire import MAX_FRAME, to_frame, to_json

ROOM = 4_096
"""What a message holds beside its value, at most."""
LITTLE = 1 << 15
"""Bytes, roughly, of a value that is a moment's work."""
JOINED = 1 << 16
"""Bytes of a piece that is not worth a copy."""
FIXED = frozenset({type(None), bool, float, datetime, date, time, timedelta, Decimal})


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
            encoded = to_json(self._new_encoder().encode(value))
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
    kind = tagged.kind_of(item)
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
