"""Results in an object store, a bucket or a directory that several replicas share: one object each."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import chain
from threading import Lock
from typing import BinaryIO

from onetool_team.results.object_cleanup import ObjectCleanup
from onetool_team.results.object_layout import TAIL_BYTES, Layout, folder_of, parts_of, tail_of
from onetool_team.results.object_place import ObjectPlace, not_kept
from onetool_team.results.object_reader import ObjectReader
from ot.errors import ResultNotFound
from ot.output.result_blobs import HandleTaken, ResultMeta, Sealed

PART_BYTES = 5 << 20
"""The least that S3 takes as a part of a larger object; smaller results are sent in one request."""
TAILS = 8
"""Ends of objects that are held: who asks for a page asks for the meta, the index and the content."""

type Tail = tuple[ResultMeta | None, bytes]


class ObjectBlobs:
    """Keeps the results of one owner."""

    def __init__(
        self,
        place: ObjectPlace,
        owner: str,
        *,
        ttl: float,
        max_total_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Keep them in the owner's folder of *place*; the oldest go when there is more than *max_total_bytes*."""
        self._place = place
        self._folder = folder_of(owner)
        self._lock = Lock()
        self._tails: dict[str, Tail] = {}
        self.cleanup = ObjectCleanup(place, self._folder, ttl=ttl, max_total_bytes=max_total_bytes, clock=clock)

    def put(self, handle: str, chunks: Iterable[bytes | bytearray], seal: Callable[[], Sealed]) -> ResultMeta:
        """Keep a result as one object, which appears when all of it has arrived."""
        key = self._folder + handle
        with not_kept():
            if self._place.exists(key):
                raise HandleTaken(handle)
        upload = _Upload(chunks, seal)
        first = upload.first(PART_BYTES)
        self.cleanup.note_start(handle)
        with upload.own_errors(), not_kept():
            if upload.sealed is None:
                self._place.put_parts(key, chain((first,), upload), PART_BYTES)
            elif not self._place.put(key, first):
                raise HandleTaken(handle)
        assert upload.sealed is not None
        self.cleanup.add(upload.sealed.meta.size_bytes)
        return upload.sealed.meta

    def meta(self, handle: str) -> ResultMeta | None:
        """Return a result's meta."""
        return self._tail(handle, anew=True)[0]

    def index(self, meta: ResultMeta) -> bytes:
        """Return the index of a result's lines."""
        return self._tail(meta.handle)[1]

    def open(self, meta: ResultMeta) -> BinaryIO:
        """Return the content, which is fetched as it is read."""
        self._tail(meta.handle)
        return BufferedReader(ObjectReader(self._place, self._folder + meta.handle, meta.size_bytes))

    def has_expired(self, handle: str, owner: str) -> bool:
        """Tell whether it was removed here because of its age."""
        return self.cleanup.has_expired(handle)

    def _tail(self, handle: str, *, anew: bool = False) -> Tail:
        with self._lock:
            known = None if anew else self._tails.get(handle)
        return known or self._read_tail(handle)

    def _read_tail(self, handle: str) -> Tail:
        key = self._folder + handle
        end, size = self._place.end(key, TAIL_BYTES)
        layout = Layout.read(end, size)
        if layout is None:
            raise ResultNotFound(handle)
        if layout.tail > len(end):
            end = self._place.part(key, layout.content, layout.tail)
        meta, index = parts_of(end, layout)
        tail = (meta if meta and meta.handle == handle else None), index
        with self._lock:
            self._tails.pop(handle, None)
            self._tails[handle] = tail
            if len(self._tails) > TAILS:
                del self._tails[next(iter(self._tails))]
        return tail


class _Upload:
    """The bytes of one object: its chunks as they come, and after the last of them what *seal* says."""

    def __init__(self, chunks: Iterable[bytes | bytearray], seal: Callable[[], Sealed]) -> None:
        self.sealed: Sealed | None = None
        """Set when all has been taken."""
        self._seal = seal
        self._pieces = self._in_order(chunks)
        self._failure: BaseException | None = None

    def first(self, length: int) -> bytearray:
        """Return at least *length* bytes, or all."""
        data = bytearray()
        for piece in self._pieces:
            data += piece
            if len(data) >= length:
                break
        return data

    def __iter__(self) -> Iterator[bytes]:
        return map(bytes, self._pieces)

    @contextmanager
    def own_errors(self) -> Generator[None]:
        """Raise what the source raised as it was, and not what the store makes of it."""
        try:
            yield
        except BaseException:
            if self._failure:
                raise self._failure from None
            raise

    def _in_order(self, chunks: Iterable[bytes | bytearray]) -> Iterator[bytes | bytearray]:
        try:
            yield from chunks
            sealed = self._seal()
        except BaseException as error:
            self._failure = error
            raise
        self.sealed = sealed
        yield tail_of(sealed)
