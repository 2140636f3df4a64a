"""GzipBody: unpacks a body that comes in pieces, and no more of it than its limit."""

from __future__ import annotations

import zlib

GZIP = 31
"""What zlib calls it."""


class GzipBody:
    """One body; it may be made of several archives, one after the other."""

    def __init__(self, limit: int) -> None:
        """Unpack up to *limit* bytes, and one more, so that too many can be seen."""
        self._left = limit + 1
        self._archive = zlib.decompressobj(GZIP)
        self._is_whole = True

    def add(self, piece: bytes) -> bytes:
        """Return what the next *piece* unpacks to.

        Raises:
            zlib.error: It is damaged.
        """
        unpacked = bytearray()
        while piece and self._left:
            if self._archive.eof:
                self._archive = zlib.decompressobj(GZIP)
            part = self._archive.decompress(piece, self._left)
            unpacked += part
            self._left -= len(part)
            self._is_whole = self._archive.eof
            piece = self._archive.unused_data
        return bytes(unpacked)

    def end(self) -> None:
        """Raise zlib.error if something is missing."""
        if not self._is_whole:
            raise zlib.error("it ends too early")
