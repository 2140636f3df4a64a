"""Replies: what came of calls as lines to be sent: values, failures, or the name of the file that a value is in.

The tagged JSON of a large value is written a part at a time, so that it is never in memory twice.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import chain
from types import TracebackType
from typing import Any

from ot_sdk import errors, tagged, wire
from ot_sdk.converter import kind_of
from ot_sdk.errors import NotPlain, ResultTooLarge
from ot_sdk.redaction import Redactor
from ot_sdk.tagged import Encoder
from ot_sdk.wire import MAX_FRAME, to_frame, to_json, to_json_lines

MAX_MESSAGE = 8_192
MAX_TRACEBACK = 4_096
CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.Cancelled, wire.CANCELLED),
    (errors.ToolTimeout, wire.TOOL_TIMEOUT),
    (errors.NotPlain, wire.RESULT_REFUSED),
    (errors.ResultTooLarge, wire.RESULT_REFUSED),
    (errors.FrameTooLarge, wire.RESULT_REFUSED),
    (errors.UnknownTool, wire.INVALID_PARAMS),
    (errors.InvalidArguments, wire.INVALID_PARAMS),
)
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep  # noqa: PTH100, PTH120 - pathlib would cost each start 5 ms

MAX_SPOOLED = 1 << 30
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
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
            encoded = to_json(Encoder().convert(value))
            if self._redactor.finds(encoded):
                encoded = to_json(self._new_encoder().convert(value))
            if len(encoded) <= self._above:
                return _reply(id, b'{"value":' + encoded + b"}")
        return self._large(id, value)

    def _large(self, id: str, value: Any) -> bytes:
        if isinstance(value, str) and len(value) > self._above:
            return self._spool_text(id, value)
        pieces = self._pieces(value)
        held = _take(pieces, self._above)
        if sum(map(len, held)) <= self._above:
            # Line breaks stand between the parts only: inside JSON's own texts they are escaped.
            return _reply(id, b'{"value":' + b"".join(held).replace(b"\n", b"") + b"}")
        if isinstance(value, str):
            return self._spool_text(id, value)
        return _reply(id, to_json(self._file().write(chain(held, pieces), form="json")))

    def _spool_text(self, id: str, value: str) -> bytes:
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


# ---------------------------------------------------------------- values a part at a time


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
            yield from self._text(self._encoder().redact(value))
        elif kind is bytes and len(value) > SLICE:
            yield from self._bytes(self._encoder().redact_bytes(value))
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
            name = before + to_json(self._encoder().redact(key)) + b":"
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


# ---------------------------------------------------------------- values in files


class Spool:
    """Writes files into the directory that the server made for this worker."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def text(self, text: str) -> dict[str, Any]:
        """Store a text as it is, and return what the reply says about it."""
        try:
            return self.write((part.encode() for part in _slices(text)), form="text")
        except UnicodeEncodeError:
            # UTF-8 cannot hold it; a tag can.
            return self.write([to_json(tagged.encode(text))], form="json")

    def write(self, pieces: Iterable[bytes], form: str) -> dict[str, Any]:
        """Store *pieces*, and return what the reply says about them; when anything fails, nothing is left.

        Raises:
            ResultTooLarge: It is too large, or the disk refuses.
        """
        name = f"{os.urandom(16).hex()}.{form}"
        path = os.path.join(self._directory, name)  # noqa: PTH118 - pathlib would cost each start 5 ms
        try:
            with os.fdopen(self._new(path), "wb", buffering=SLICE) as file:
                size = _copy(pieces, file.write)
        except BaseException as error:
            with suppress(OSError):  # the server empties the directory in the end
                os.unlink(path)  # noqa: PTH108 - as above
            if not isinstance(error, OSError):
                raise
            why = f"no file could be written for it: {error.strerror or type(error).__name__}"
            raise ResultTooLarge(f"the value is too large for a message, and {why}") from None
        return {"spooled": {"name": name, "bytes": size, "form": form}}

    def _new(self, path: str) -> int:
        try:
            return os.open(path, _FLAGS, 0o600)
        except FileNotFoundError:  # somebody has deleted the directory
            _make(self._directory)
            return os.open(path, _FLAGS, 0o600)


def _make(directory: str) -> None:
    """Make *directory* and those above it that are missing, for this user alone."""
    with suppress(FileExistsError):
        try:
            os.mkdir(directory, 0o700)  # noqa: PTH102 - as below
        except FileNotFoundError:
            _make(os.path.dirname(directory))  # noqa: PTH120 - as below
            os.mkdir(directory, 0o700)  # noqa: PTH102 - as below


def _copy(pieces: Iterable[bytes], write: Any) -> int:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_SPOOLED:
            raise ResultTooLarge(f"the value is larger than {MAX_SPOOLED:,} bytes: return less of it")
        write(piece)
    return size


# ---------------------------------------------------------------- failures


def failure(id: Any, error: BaseException, redactor: Redactor, code: int | None = None) -> wire.Message:
    """Return the reply that says why there is no value."""
    if code is None:
        code = next((code for kind, code in CODES if isinstance(error, kind)), wire.TOOL_FAILED)
    message = cut(redactor.text(_text(error)), MAX_MESSAGE)
    trace = cut(redactor.text(_trace(error)), MAX_TRACEBACK)
    return wire.error(id, code, message, kind=type(error).__name__, traceback=trace)


def cut(text: str, limit: int) -> str:
    """Return at most *limit* characters of *text*, its beginning and its end."""
    if len(text) <= limit:
        return text
    mark = "\n[...]\n"
    head = limit // 4
    return text[:head] + mark + text[len(text) - (limit - head - len(mark)) :]


def _text(error: BaseException) -> str:
    try:
        # A KeyError's text is its key in quotes, and the program that sees it would put it in quotes again.
        return str(error.args[0]) if type(error) is KeyError and len(error.args) == 1 else str(error)
    except BaseException:  # noqa: BLE001 - an exception's own __str__ is other people's code
        return ""


def _trace(error: BaseException) -> str:
    frames = _own_frames(error.__traceback__)
    if frames is None:
        return ""
    try:
        # In here: without a descriptor left it cannot be imported, and the call must be answered all the same.
        import traceback  # noqa: PLC0415 - costs a tenth of a worker's start, and most calls succeed

        return "".join(traceback.format_exception(type(error), error, frames))
    except BaseException:  # noqa: BLE001 - formatting runs other people's code too
        return ""


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the frames without the worker's own, which say nothing to the tool's author."""
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_HERE, "<frozen importlib")):
        trace = trace.tb_next
    return trace
