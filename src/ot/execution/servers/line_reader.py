"""LineReader: a stream as lines, whatever comes."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from ot.execution.servers.server_noise import SHOWN_CHARACTERS, ServerNoise

CHUNK_BYTES = 32 << 10
MAX_LINE_BYTES = 64 << 20


class Readable(Protocol):
    """Something that gives bytes until it ends."""

    async def read(self, n: int = -1, /) -> bytes:
        """Return some bytes; none at the end."""
        ...


class LineReader:
    """Cuts a stream at its line ends; a line that is too long, or has no end, is noise."""

    def __init__(self, stream: Readable, noise: ServerNoise, most: int = MAX_LINE_BYTES) -> None:
        """Read *stream*; no line of more than *most* bytes is held."""
        self._stream = stream
        self._noise = noise
        self._most = most
        self._lines: deque[bytes] = deque()
        self._parts: list[bytes] = []
        self._size = 0

    async def line(self) -> bytes | None:
        """Return the next line without its end, or None when there are no more."""
        while not self._lines:
            data = await self._stream.read(CHUNK_BYTES)
            if not data:
                self._end()
                return None
            self._feed(data)
        return self._lines.popleft()

    def _feed(self, data: bytes) -> None:
        *ends, rest = data.split(b"\n")
        for end in ends:
            if not end and not self._size:
                continue
            self._grow(end)
            self._finish()
        self._grow(rest)

    def _grow(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._most:
            self._parts.append(part)
        elif self._parts:  # too long: only its beginning is kept, for the log
            self._parts = [b"".join(self._parts)[:SHOWN_CHARACTERS]]

    def _finish(self) -> None:
        line, size = b"".join(self._parts), self._size
        self._parts, self._size = [], 0
        if size > self._most:
            self._noise.add(line, f"{size:,} bytes, more than {self._most:,}")
        elif line.strip():
            self._lines.append(line)

    def _end(self) -> None:
        line = b"".join(self._parts)
        self._parts, self._size = [], 0
        if line.strip():
            self._noise.add(line, "its end is missing")
