"""GzipBody: unpacks a body that comes in pieces, never to more than is wanted of it."""

from __future__ import annotations

import zlib

GZIP = 31
"""What zlib calls it."""


class GzipBody:
    """One body; it may be made of several archives, one after the other."""

    def __init__(self) -> None:
        """Begin."""
        self._archive = zlib.decompressobj(GZIP)
        self._is_whole = True

    def add(self, piece: bytes, most: int) -> bytes:
        """Return up to *most* bytes of what the next *piece* unpacks to.

        Raises:
            zlib.error: It is damaged.
        """
        unpacked = bytearray()
        while piece and len(unpacked) < most:
            if self._archive.eof:
                self._archive = zlib.decompressobj(GZIP)
            unpacked += self._archive.decompress(piece, most - len(unpacked))
            self._is_whole = self._archive.eof
            piece = self._archive.unused_data
        return bytes(unpacked)

    def end(self) -> None:
        """Raise zlib.error if something is missing."""
        if not self._is_whole:
            raise zlib.error("it ends too early")
