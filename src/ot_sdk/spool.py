"""Spool: puts a value that is too large for a message into a file for the server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from ot_sdk.errors import ResultTooLarge
from ot_sdk.tagged import encode
from ot_sdk.wire import to_json

MAX_SPOOLED = 1 << 30
PIECE = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


class Spool:
    """Writes files into the directory that the server made for this worker."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def text(self, text: str) -> dict[str, Any]:
        """Store a text as it is, and return what the reply says about it."""
        try:
            return self.write(_encoded(text), form="text")
        except UnicodeEncodeError:
            # UTF-8 cannot hold it; a tag can.
            return self.write([to_json(encode(text))], form="json")

    def write(self, pieces: Iterable[bytes], form: str) -> dict[str, Any]:
        """Store *pieces*, and return what the reply says about them; when anything fails, nothing is left.

        Raises:
            ResultTooLarge: It is too large, or the disk refuses.
        """
        name = f"{os.urandom(16).hex()}.{form}"
        path = os.path.join(self._directory, name)  # noqa: PTH118 - pathlib would cost each start 5 ms
        try:
            with os.fdopen(self._new(path), "wb", buffering=PIECE) as file:
                size = _copy(pieces, file.write)
        except BaseException as error:
            with suppress(OSError):  # the server empties the directory in the end
                os.unlink(path)  # noqa: PTH108 - as above
            if isinstance(error, OSError):
                raise _refused(error) from None
            raise
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


def _encoded(text: str) -> Iterator[bytes]:
    """Yield *text* a part at a time: encoding it whole would double it."""
    return (text[start : start + PIECE].encode() for start in range(0, len(text), PIECE))


def _refused(error: OSError) -> ResultTooLarge:
    reason = error.strerror or type(error).__name__
    return ResultTooLarge(f"the value is too large for a message, and no file could be written for it: {reason}")
