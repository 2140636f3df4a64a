"""The wire between server and worker: JSON-RPC 2.0, one message a line, the same on both ends.

Server to worker: requests ``init`` and ``call``, the notification ``cancel``.
Worker to server: requests ``call_tool`` and ``ask_model``, whose ids begin with ``w``; notifications ``print``,
``log``, ``progress``, ``image``.
The reply to ``init`` says that the worker is ready. docs/reference/ot-sdk.md lists what each message holds.
The worker's own end is a ``Line``.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn, cast

from ot_sdk.errors import FrameTooLarge

PROTOCOL = 1
MAX_FRAME = 16 << 20
"""Bytes of a message's line."""
CHUNK = 1 << 16
PATIENCE = 0.3
"""Seconds for what was written to standard error: nobody may be reading it."""

EXIT_OK, EXIT_START_FAILED, EXIT_WIRE_LOST = 0, 3, 4
"""How a worker's process ends; without its wire, which something closed, no call can be answered."""

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
TOOL_FAILED = -32000
TOOL_TIMEOUT = -32001
RESULT_REFUSED = -32002
START_FAILED = -32003
CANCELLED = -32800

Message = dict[str, Any]
_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))
_BY_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",\n", ":"))
_ESCAPED = json.JSONEncoder(ensure_ascii=True, allow_nan=False, check_circular=False, separators=(",", ":"))


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


# ---------------------------------------------------------------- messages


def request(id: str, method: str, params: Mapping[str, Any]) -> Message:
    """Return a message that wants a reply."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notification(method: str, params: Mapping[str, Any]) -> Message:
    """Return a message that wants no reply."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(id: Any, value: Mapping[str, Any]) -> Message:
    """Return the reply to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": id, "result": value}


def error(id: Any, code: int, message: str, *, kind: str = "", traceback: str = "") -> Message:
    """Return the reply to a request that failed; *kind* is the name of the exception's class."""
    data = {"kind": kind, "traceback": traceback}
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}


# ---------------------------------------------------------------- lines


def to_json(value: Any) -> bytes:
    """Return compact JSON in UTF-8, without a line break; text that UTF-8 cannot hold is escaped.

    Raises:
        ValueError: A float is not finite: ``tagged.encode`` has a form for it.
    """
    try:
        return _COMPACT.encode(value).encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value).encode()


def to_json_lines(values: list[Any], between: bytes = b",\n") -> bytes:
    """Return the JSON of each of *values*, with *between*, a comma or a comma and a line break, between them."""
    if between == b",":
        return to_json(values)[1:-1]
    if len(values) > 1 and not any(isinstance(value, list | dict) for value in values):
        # None of them has a comma of its own, so one call can write them all.
        with suppress(UnicodeEncodeError):
            return _BY_LINE.encode(values)[1:-1].encode()
    return between.join(map(to_json, values))


def to_frame(message: Mapping[str, Any]) -> bytes:
    """Return *message* as the line that is sent.

    Raises:
        FrameTooLarge: It is larger than the other end would take.
    """
    frame = to_json(message) + b"\n"
    if len(frame) > MAX_FRAME:
        raise FrameTooLarge(f"a message of {len(frame):,} bytes is too large, at most {MAX_FRAME:,} can be sent")
    return frame


def parse(line: bytes | bytearray) -> Message:
    """Return the message on a line.

    Raises:
        ValueError: It is not a JSON object in UTF-8.
    """
    try:
        message = _DECODER.decode(line.decode())
    except RecursionError:
        raise ValueError("a message is nested too deeply") from None
    if not isinstance(message, dict):
        raise ValueError("a message is not an object")
    return cast("Message", message)


class FrameSplitter:
    """Finds the messages in bytes as they come; lines that hold none are skipped and counted."""

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self.skipped = 0
        self._max = max_frame
        self._line = bytearray()
        self._discarding = False

    def feed(self, data: bytes) -> list[Message]:
        """Return the messages that *data* completes."""
        *ends, rest = data.split(b"\n")
        messages = [message for end in ends if (message := self._complete(end)) is not None]
        self._keep(rest)
        return messages

    def read(self, fd: int) -> Iterator[Message]:
        """Yield the messages that come from a file descriptor, until it ends; blocks, so it wants its own thread."""
        while data := os.read(fd, CHUNK):
            yield from self.feed(data)

    def _keep(self, part: bytes) -> None:
        if self._discarding or len(self._line) + len(part) >= self._max:
            # Up to the next line break nothing is kept, however much comes.
            self._discarding = True
            self._line.clear()
        else:
            self._line += part

    def _complete(self, end: bytes) -> Message | None:
        self._keep(end)
        line, self._line = self._line, bytearray()
        too_long, self._discarding = self._discarding, False
        try:
            if not too_long:
                return parse(line) if line.strip() else None
        except ValueError:
            pass
        self.skipped += 1
        return None


class FrameWriter:
    """Sends messages from any thread, each in one piece."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._file = _identity(fd)
        # The collector may run a __del__ that prints, in the very thread that is sending.
        self._lock = threading.RLock()
        self._waiting: list[bytes] = []
        self._sending = False

    def send(self, message: Mapping[str, Any]) -> None:
        """Send *message*.

        Raises:
            FrameTooLarge: It is too large; nothing was sent.
            OSError: The other end is gone.
        """
        self.send_frame(to_frame(message))

    def send_frame(self, frame: bytes) -> None:
        """Send a whole line, its line break included."""
        with self._lock:
            self._waiting.append(frame)
            if self._sending:
                return
            self._sending = True
            try:
                while self._waiting:
                    self._write(self._waiting.pop(0))
            finally:
                self._sending = False

    def _write(self, frame: bytes) -> None:
        # Code that closes every descriptor it finds may have made this number another file's.
        if _identity(self._fd) != self._file:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        rest = memoryview(frame)
        while rest:
            rest = rest[os.write(self._fd, rest) :]


def _identity(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


# ---------------------------------------------------------------- the worker's end


class Line(FrameWriter):
    """The worker's end of the wire, shared by all its threads; when nobody can hear it any more, the worker ends."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        super().__init__(out_fd)
        self.in_fd = in_fd
        self.open = True

    def send(self, message: Mapping[str, Any]) -> None:
        """Send *message*; a forked child says nothing.

        Raises:
            FrameTooLarge: It is too large; nothing was sent.
        """
        frame = to_frame(message)
        if self.open:
            self.send_frame(frame)

    def send_frame(self, frame: bytes) -> None:
        """Send a whole line; a forked child that got as far as the reply to a call ends."""
        if not self.open:
            leave(EXIT_OK)
        try:
            super().send_frame(frame)
        except OSError as error:
            if error.errno == errno.EPIPE:
                leave(EXIT_OK)  # the server is gone, and so is the reason to be here
            with suppress(Exception):  # standard error may be closed too
                sys.stderr.write(f"ot_sdk: the worker's connection is gone ({error}): did a tool close all files?\n")
            leave(EXIT_WIRE_LOST)

    def cut(self) -> None:
        """Let go of the wire in a forked child: it must not speak for its parent, nor keep the wire open."""
        self.open = False
        out_fd, self._fd = self._fd, -1
        for fd in (self.in_fd, out_fd):
            with suppress(OSError):
                os.close(fd)


def leave(code: int) -> NoReturn:
    """End the process, without waiting for threads, tasks or exit handlers of the pack."""
    with suppress(RuntimeError):  # the system gives no more threads
        flusher = threading.Thread(target=_flush, daemon=True)
        flusher.start()
        flusher.join(PATIENCE)
    os._exit(code)


def _flush() -> None:
    for stream in (sys.__stdout__, sys.stderr):
        with suppress(Exception):  # closed, or replaced by the pack with something of its own
            stream.flush()  # pyright: ignore[reportOptionalMemberAccess] - a pack may have set it to None, hence the suppress
