"""What tools print: sent to the server with the id of their call, or to standard error outside of one."""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable
from typing import Any

from ot_sdk.call import current_call

PIECE = 1 << 16
"""Characters sent at once, with or without a line break."""


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

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - a constant here
        return "utf-8"

    @property
    def errors(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - a constant here
        return "strict"

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
