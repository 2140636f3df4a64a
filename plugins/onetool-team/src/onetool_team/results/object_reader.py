"""ObjectReader: an object's content as a seekable file, fetched a range at a time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from onetool_team.results.object_place import ObjectPlace

if TYPE_CHECKING:
    from collections.abc import Buffer

LEAST = 256 << 10
"""What a request fetches: a round trip costs as much as this many bytes."""
MOST = 8 << 20
"""What it fetches at last when somebody reads on and on."""
_GROWTH = 4


class ObjectReader(io.RawIOBase):
    """Reads the first *size* bytes of an object; who reads on gets more at once."""

    def __init__(self, place: ObjectPlace, key: str, size: int) -> None:
        """Fetch nothing yet."""
        super().__init__()
        self._place = place
        self._key = key
        self._size = size
        self._position = 0
        self._held = b""
        self._start = 0
        self._ahead = LEAST

    def readable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go there; nothing is fetched."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill what is held of the next bytes into *buffer*, fetched before where nothing is."""
        view = memoryview(buffer).cast("B")
        found = self._next(len(view))[: len(view)]
        view[: len(found)] = found
        self._position += len(found)
        return len(found)

    def readall(self) -> bytes:
        """Return all the rest."""
        parts: list[bytes] = []
        while part := bytes(self._next(MOST)):
            parts.append(part)
            self._position += len(part)
        return b"".join(parts)

    def _next(self, wanted: int) -> memoryview:
        """Return the held bytes from the position on, at least one unless it is the end."""
        if not self._start <= self._position < self._start + len(self._held):
            self._fetch(wanted)
        return memoryview(self._held)[self._position - self._start :]

    def _fetch(self, wanted: int) -> None:
        reads_on = self._held and self._position == self._start + len(self._held)
        self._ahead = min(self._ahead * _GROWTH, MOST) if reads_on else LEAST
        length = min(max(wanted, self._ahead), MOST, self._size - self._position)
        self._held = self._place.part(self._key, self._position, length) if length > 0 else b""
        self._start = self._position
