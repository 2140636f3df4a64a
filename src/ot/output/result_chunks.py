"""Cuts a result that comes in pieces of any size into blocks, counting its lines on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ot.errors import StorageFull
from ot.output.result_lines import BLOCK, LineIndexBuilder

FLUSH = 16 * BLOCK


def counted_blocks(chunks: Iterable[bytes | str], index: LineIndexBuilder, max_bytes: int) -> Iterator[bytearray]:
    """Yield *chunks* as whole blocks, the last one aside, each counted by *index* before.

    Raises:
        StorageFull: There is more than *max_bytes*.
    """
    for block in _blocks(chunks):
        index.add(block)
        if index.size > max_bytes:
            raise StorageFull(f"the result is larger than all results together may be ({max_bytes:,} bytes)")
        yield block


def _blocks(chunks: Iterable[bytes | str]) -> Iterator[bytearray]:
    waiting = bytearray()
    for piece in _pieces(chunks):
        waiting += piece
        if len(waiting) >= FLUSH:
            whole = len(waiting) - len(waiting) % BLOCK
            yield waiting[:whole]
            del waiting[:whole]
    if waiting:
        yield waiting


def _pieces(chunks: Iterable[bytes | str]) -> Iterator[bytes]:
    """Yield *chunks* as bytes, large ones a part at a time: encoding one whole would double it."""
    for chunk in (chunks,) if isinstance(chunks, str | bytes) else chunks:
        if len(chunk) > FLUSH:
            yield from (_encoded(chunk[start : start + FLUSH]) for start in range(0, len(chunk), FLUSH))
        else:
            yield _encoded(chunk)


def _encoded(chunk: bytes | str) -> bytes:
    # A lone surrogate cannot be stored as UTF-8; its escape says what was there.
    return chunk.encode(errors="backslashreplace") if isinstance(chunk, str) else chunk
