"""What stands for standard output and standard error inside a program."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

PROMPT = 500
"""So many prints are sent at once: what was printed before an endless loop is known. More of them are gathered."""
GATHER_BYTES = 8192
GATHER_SECONDS = 0.02


class Prints(io.TextIOBase):
    """A text stream that sends what is written, up to a cap, and counts the rest."""

    encoding = "utf-8"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride] - as a real one has it
    errors = "replace"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride] - as above

    def __init__(self, send: Callable[[Any], None], most: int) -> None:
        """Send at most *most* characters with *send*."""
        self._send_message = send
        self._left = most
        self._parts: list[str] = []
        self._size = 0
        self._sent = 0
        self._last = 0.0
        self._now = time.monotonic
        self.dropped = 0

    def writable(self) -> bool:
        """Return that it can be written to."""
        return True

    def write(self, text: str, /) -> int:
        """Take *text*; return its length."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a program gives what it likes
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        kept = "" if self.dropped else text[: self._left]
        if len(kept) < len(text):
            self.dropped += len(text) - len(kept)
        if kept:
            self._left -= len(kept)
            self._size += len(kept)
            self._parts.append(kept)
            now = self._now()
            if self._sent < PROMPT or self._size >= GATHER_BYTES or now - self._last > GATHER_SECONDS:
                self._last = now
                self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what was gathered."""
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            self._sent += 1
            self._send_message({"t": "print", "o": "".join(parts)})
