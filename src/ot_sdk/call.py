"""Call: one call that the server asked for: its arguments, its time, its interrupts and its prints."""

from __future__ import annotations

import io
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

from ot_sdk import tagged, wire
from ot_sdk.errors import Cancelled, InvalidArguments, ToolTimeout

PIECE = 1 << 16
"""Characters printed that are sent at once, with or without a line break."""


class Call:
    """One call, from its request to its reply."""

    def __init__(self, id: str, tool: str, function: Callable[..., Any], params: Any, prints: PrintBuffer) -> None:
        self.id = id
        self.tool = tool
        self.function = function
        self.prints = prints
        self.seconds = params["ms"] / 1000
        self.deadline = time.monotonic() + self.seconds
        self.interrupts = Interrupts()
        self.key = str(params.get("key", ""))
        self._arguments = params["arguments"]

    @property
    def seconds_left(self) -> float:
        """How long it may still take."""
        return self.deadline - time.monotonic()

    def begin(self) -> Any:
        """Call the tool and return what it returns.

        Raises:
            ToolTimeout: The call waited for its turn until its time was over.
            InvalidArguments: Its arguments cannot be read.
        """
        if self.seconds_left <= 0:
            raise self.timeout()
        return self.function(**self._decode())

    def timeout(self) -> ToolTimeout:
        """Return the error for a call whose time is over."""
        return ToolTimeout(f"{self.tool} did not answer within {self.seconds:g} s and was cancelled")

    def _decode(self) -> dict[str, Any]:
        try:
            arguments = tagged.decode(self._arguments)
        except ValueError as error:
            raise InvalidArguments(f"the arguments of {self.tool} cannot be read: {error}") from None
        if not isinstance(arguments, dict):
            raise InvalidArguments(f"the arguments of {self.tool} are not given by name")
        return cast("dict[str, Any]", arguments)


current_call: ContextVar[Call | None] = ContextVar("ot_sdk_call", default=None)
"""The call whose tool is running here; threads and tasks that copy the context inherit it."""


def send_for_pack(line: wire.Line, message: wire.Message) -> None:
    """Send *message* for code of a pack, which may be interrupted before and after, but not within."""
    call = current_call.get()
    if call is None:
        line.send(message)
        return
    with call.interrupts.shield():
        line.send(message)


# ---------------------------------------------------------------- interrupts


class Interrupts:
    """Around a tool's code: ``Cancelled`` is raised in there when another thread asks for it.

    It reaches Python code only; a thread that waits inside C code meets it when that returns.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collector may run a __del__ that prints
        self._thread: int | None = None
        self.wanted = False
        self._given = False
        self._shields = 0

    def __enter__(self) -> None:
        with self._lock:
            self._raise_if_wanted()
            self._thread = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._thread = None
            _checkpoint()

    def interrupt(self) -> None:
        """Raise ``Cancelled`` in the thread: at once, or when it leaves its shield, or when it begins."""
        with self._lock:
            self.wanted = True
            if self._thread is not None and not self._given and not self._shields:
                self._given = True
                _raise_in(self._thread)

    @contextmanager
    def shield(self) -> Generator[None]:
        """Hold an interrupt back meanwhile: half a message must not reach the wire."""
        if self._thread != threading.get_ident():
            yield  # another thread, which nobody interrupts
            return
        with self._lock:
            _checkpoint()
            self._shields += 1
        try:
            yield
        finally:
            with self._lock:
                self._shields -= 1
        with self._lock:
            self._raise_if_wanted()

    def _raise_if_wanted(self) -> None:
        if self.wanted and not self._given and not self._shields:
            self._given = True
            raise Cancelled


def _checkpoint() -> None:
    """Let an interrupt that is on its way arrive here: the interpreter looks for one when a function begins."""


def _raise_in(thread: int) -> None:
    try:
        import ctypes  # noqa: PLC0415 - most workers never interrupt a thread
    except ImportError:
        return  # a Python without it: the server ends the worker when its patience is over
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Cancelled))


# ---------------------------------------------------------------- prints


class PrintBuffer:
    """Collects what one call prints and sends it line by line."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self._send = send
        self._text = ""
        self._open = True
        self._lock = threading.RLock()  # the collector may run a __del__ that prints

    def write(self, text: str) -> bool:
        """Take *text*; false when the call has ended and can print no more."""
        with self._lock:
            if self._open:
                self._text += text
                end = len(self._text) if len(self._text) > PIECE else self._text.rfind("\n") + 1
                self._send_until(end)
            return self._open

    def close(self) -> None:
        """Send the rest, and take no more."""
        with self._lock:
            self._open = False
            self._send_until(len(self._text))

    def _send_until(self, end: int) -> None:
        ready, self._text = self._text[:end], self._text[end:]
        for start in range(0, len(ready), PIECE):
            self._send(ready[start : start + PIECE])


class CallOutput(io.TextIOBase):
    """Stands in for ``sys.stdout``."""

    encoding = "utf-8"
    errors = "strict"

    @property
    def buffer(self) -> io.RawIOBase:
        """The same place, for bytes."""
        return _CallOutputBytes(self)

    def write(self, text: str, /) -> int:
        """Take *text* for the call that is running in this context."""
        if type(text) is not str:
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        call = current_call.get()
        if call is None or not call.prints.write(text):
            sys.stderr.write(text)
        return len(text)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Return the descriptor of standard output, which leads to standard error."""
        return 1

    def reconfigure(self, **options: Any) -> None:
        """Do nothing: there is no encoding to change."""


class _CallOutputBytes(io.RawIOBase):
    def __init__(self, output: CallOutput) -> None:
        self._output = output

    def write(self, data: Any, /) -> int:
        raw = bytes(data)
        self._output.write(raw.decode(errors="replace"))
        return len(raw)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._output.fileno()
