"""Channel: a child's only way out, used by every thread and event loop of its program.

A message is a header of size and number, then JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import struct
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    import asyncio

CHUNK = 1 << 16
HEADER = struct.Struct("!II")
NOTICE = 0
"""The number of a message that wants no answer: prints, and the end."""
START = 0
"""The number of the server's first message, the program."""
MORE_THAN_A_VALUE = 1 << 20
"""What a message may have beside a value of the largest size."""

# Bound before any program runs: one that changes json must not change what is sent.
dumps: Callable[[Any], str] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
loads: Callable[[str], Any] = json.JSONDecoder().decode


def frame(number: int, payload: bytes) -> bytes:
    """Return a message as it goes over the wire."""
    return HEADER.pack(len(payload), number) + payload


def largest_message(value_bytes: int) -> int:
    """Return how many bytes a message may have when a value may have *value_bytes*: some are written with escapes."""
    return 2 * value_bytes + MORE_THAN_A_VALUE


class Room(NamedTuple):
    """What one child may use."""

    memory_bytes: int
    cpu_seconds: float


class MessageTooLarge(ValueError):
    """A message is larger than the server takes."""


class Channel:
    """Sends requests on one descriptor and hands each answer to whoever waits for it."""

    def __init__(self, fd: int) -> None:
        """Use *fd*, a connected stream socket."""
        self._fd = fd
        self._most = 1 << 20
        self._numbers = itertools.count(1)
        self._buffer = bytearray()
        self._answers: dict[int, bytes] = {}
        self._futures: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Future[bytes], int]] = {}
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._reading = False
        self.before_call: Callable[[], None] = lambda: None
        """What has to be done before a tool is called."""
        self.program = ""
        """What tracebacks call the program that is running."""
        self.saved: dict[str, dict[str, Any]] = {}
        """The names of the saved programs that it has called, by what tracebacks call them."""
        # Bound now: a program may change what the modules hold.
        self._read, self._write, self._exit, self._select = os.read, os.write, os._exit, select.select

    def allow(self, most_bytes: int) -> None:
        """Refuse to send messages of more than *most_bytes*."""
        self._most = most_bytes

    def notify(self, message: Any) -> None:
        """Send what wants no answer."""
        self._send(NOTICE, message)

    def ask(self, message: Any) -> bytes:
        """Return the answer to *message*, waiting for it."""
        self.before_call()
        return self.ask_file(message)

    def ask_file(self, message: Any, data: bytes = b"") -> bytes:
        """Return the answer to *message* and the *data* behind it, waiting for it."""
        number = next(self._numbers)
        self._send(number, message, data)
        return self._wait(number)

    def ask_later(self, message: Any) -> asyncio.Future[bytes]:
        """Return a future of the answer, for the event loop that runs in this thread."""
        import asyncio  # noqa: PLC0415 - it is half of a zygote's start; the program that awaits has loaded it

        self.before_call()
        number = next(self._numbers)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        self._futures[number] = (loop, future, threading.get_ident())
        loop.add_reader(self._fd, self._readable, loop)
        self._send(number, message)
        return future

    def has_message(self, within_seconds: float = 0) -> bool:
        """Return whether the server has sent something that is not read yet, or does so *within_seconds*."""
        return bool(self._select([self._fd], [], [], within_seconds)[0])

    def receive(self) -> tuple[int, bytes]:
        """Return the server's next message: for the child's own start, before any program."""
        while (found := self._next()) is None:
            self._fill()
        return found

    def next_program(self) -> bytes:
        """Return the session's next program; threads that earlier ones left may be reading too."""
        return self._wait(0)

    def wait_to_be_ended(self) -> NoReturn:
        """Say nothing more and take what still comes, until the server ends this process.

        A process that ended by itself would close the socket under answers that are on their way, and the server's
        loop drops what it has not read yet, such as the program's value, when it cannot write.
        """
        with self._sending:
            while self._read(self._fd, CHUNK):
                pass
            self._leave()

    # ---------------------------------------------------------------- sending

    def _send(self, number: int, message: Any, data: bytes = b"") -> None:
        payload = dumps(message).encode("utf-8", "replace") + data
        if len(payload) > self._most:
            raise MessageTooLarge(f"a message of {len(payload):,} bytes is too large (limits.value_bytes)")
        rest = memoryview(frame(number, payload))
        with self._sending:
            while rest:
                rest = rest[self._write(self._fd, rest) :]

    # ---------------------------------------------------------------- receiving

    def _wait(self, number: int) -> bytes:
        with self._changed:
            while number not in self._answers:
                if self._reading:
                    self._changed.wait()
                else:
                    self._take_turn()
            return self._answers.pop(number)

    def _take_turn(self) -> None:
        """Read for everyone, since nobody else does."""
        self._reading = True
        self._changed.release()
        try:
            self._fill()
        finally:
            self._changed.acquire()
            self._reading = False
            self._hand_out()
            self._changed.notify_all()

    def _readable(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._changed:
            # Another thread may have taken what there was.
            if not self._reading and self.has_message():
                self._take_turn()
            if not any(waiting is loop for waiting, _, _ in self._futures.values()):
                loop.remove_reader(self._fd)

    def _fill(self) -> None:
        data = self._read(self._fd, CHUNK)
        if not data:
            self._leave()
        self._buffer += data

    def _leave(self) -> NoReturn:
        """End: the server has gone, or does not want this child any more."""
        self._exit(0)
        raise AssertionError  # never reached: for the reader's and the type checker's sake

    def _hand_out(self) -> None:
        while (found := self._next()) is not None:
            number, payload = found
            waiting = self._futures.pop(number, None)
            if waiting is None:
                self._answers[number] = payload
                continue
            loop, future, thread = waiting
            if thread == threading.get_ident():
                _settle(future, payload)
            else:
                loop.call_soon_threadsafe(_settle, future, payload)

    def _next(self) -> tuple[int, bytes] | None:
        if len(self._buffer) < HEADER.size:
            return None
        size, number = HEADER.unpack_from(self._buffer)
        if len(self._buffer) < HEADER.size + size:
            return None
        payload = bytes(memoryview(self._buffer)[HEADER.size : HEADER.size + size])
        del self._buffer[: HEADER.size + size]
        return number, payload


def _settle(future: asyncio.Future[bytes], payload: bytes) -> None:
    if not future.done():
        future.set_result(payload)
