"""Results in memory, for tests: what any place for results must do, without a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import BytesIO
from threading import Lock
from typing import BinaryIO

from ot.output.result_blobs import HandleTaken, ResultMeta, Sealed


class MemoryBlobs:
    """Keeps everything until it goes away itself."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._lock = Lock()
        self._claimed: set[str] = set()
        self._kept: dict[str, tuple[Sealed, bytes]] = {}

    def put(self, handle: str, chunks: Iterable[bytes | bytearray], seal: Callable[[], Sealed]) -> ResultMeta:
        """Keep a result once all of it has come."""
        with self._lock:
            if handle in self._claimed:
                raise HandleTaken(handle)
            self._claimed.add(handle)
        try:
            content = b"".join(map(bytes, chunks))
            sealed = seal()
        except BaseException:
            self._claimed.discard(handle)
            raise
        self._kept[handle] = sealed, content
        return sealed.meta

    def meta(self, handle: str) -> ResultMeta | None:
        """Return a result's meta."""
        return self._find(handle)[0].meta

    def index(self, meta: ResultMeta) -> bytes:
        """Return the index of a result's lines."""
        return self._find(meta.handle)[0].index

    def open(self, meta: ResultMeta) -> BinaryIO:
        """Return the content."""
        return BytesIO(self._find(meta.handle)[1])

    def has_expired(self, handle: str, owner: str) -> bool:
        """Never: nothing is removed."""
        return False

    def _find(self, handle: str) -> tuple[Sealed, bytes]:
        try:
            return self._kept[handle]
        except KeyError:
            raise FileNotFoundError(handle) from None
