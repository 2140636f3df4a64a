"""Ending: how a process ended; StderrRing: the last that it said."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

STDERR_BYTES = 64 << 10
LINE_BYTES = 4 << 10

EndingKind = Literal["exit", "signal", "limit"]
"""By itself, by a signal, or because it had started more processes than it may."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a process ended, and the last that it wrote on standard error."""

    kind: EndingKind
    number: int
    stderr: str = ""

    @property
    def text(self) -> str:
        """The ending in words, such as ``signal SIGSEGV``."""
        if self.kind == "exit":
            return f"exit code {self.number}"
        if self.kind == "limit":
            return f"more than {self.number} processes"
        try:
            return f"signal {signal.Signals(self.number).name}"
        except ValueError:
            return f"signal {self.number}"


class StderrRing:
    """The last bytes of a stream, and its lines for whoever wants them."""

    def __init__(self, on_line: Callable[[str], None] | None) -> None:
        """Give every line to *on_line*, cut where it is very long."""
        self._bytes = bytearray()
        self._line = b""
        self._on_line = on_line

    def take(self, data: bytes) -> None:
        """Keep *data*, and forget what is too old."""
        self._bytes += data
        if len(self._bytes) > 2 * STDERR_BYTES:
            del self._bytes[:-STDERR_BYTES]
        if self._on_line is not None:
            *lines, self._line = (self._line + data).split(b"\n")
            self._line = self._line[:LINE_BYTES]
            for line in lines:
                self._on_line(line[:LINE_BYTES].decode(errors="replace"))

    def tail(self, size: int = STDERR_BYTES) -> str:
        """Return the last *size* bytes as text, whatever they are."""
        return self._bytes[-size:].decode(errors="replace")
