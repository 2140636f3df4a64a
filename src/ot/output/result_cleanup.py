"""ResultCleanup: removes stored results that are too old, too many, or were left unfinished by a crash."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock

from ot.output.result_blobs import ResultMeta, is_older
from ot.output.result_files import CONTENT, META, ResultDirectory, ResultFile, file_name

LOG = logging.getLogger(__name__)

UNFINISHED = timedelta(hours=1)
"""How long unreadable leftovers stay when results are kept for ever."""

NEW = timedelta(minutes=1)
"""By then a writer holds its lock: before, what is unfinished is left alone whatever room it takes."""

REMEMBERED = 1000
"""How many removed results are remembered, to say that they have expired and not that they never were."""

CROWD = 1000
"""For each so many results the directory is left alone for a second: listing them all at every store is too slow."""

Stamp = tuple[str, int, int, int]
"""A meta file as it was when it was read: handle, inode, time of change, size."""


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """What the directory holds under one handle; without a meta it is unfinished or damaged."""

    handle: str
    suffixes: tuple[str, ...]
    modified: datetime
    size: int
    """How many bytes it has; what is unfinished counts once it is no longer new."""
    meta: ResultMeta | None = None

    @property
    def since(self) -> datetime:
        """When its time began."""
        return self.meta.created_at if self.meta else self.modified


class ResultCleanup:
    """Keeps one directory within its time and its size; several may clean the same directory."""

    def __init__(self, ttl: timedelta, max_total_bytes: int, beside: Callable[[], int] = lambda: 0) -> None:
        """Keep the results, and what takes up room *beside* them, within *max_total_bytes*."""
        self._ttl = ttl
        self._max_total_bytes = max_total_bytes
        self._beside = beside
        self._lock = Lock()
        self._total = 0
        self._next_sweep = 0.0
        # A meta does not change, so each is parsed once and not at every store.
        self._known: dict[Stamp, ResultEntry] = {}
        self._expired: dict[str, str] = {}

    def sweep(self, directory: ResultDirectory, now: datetime) -> None:
        """Remove what is older than the TTL, and what a crash left as long ago."""
        with self._lock:
            if time.monotonic() < self._next_sweep:
                return
            entries = self._survey(directory)
            # Without a TTL results are kept for ever, but unfinished files are not.
            over = [
                entry
                for entry in entries
                if (self._ttl or not entry.meta) and is_older(entry.since, now, self._ttl or UNFINISHED)
            ]
            for entry in over:
                self._remember(entry)
                _remove(directory, entry)
            self._total = sum(entry.size for entry in entries) - sum(entry.size for entry in over)
            self._next_sweep = time.monotonic() + len(entries) // CROWD

    def make_room(self, directory: ResultDirectory, newest: ResultMeta) -> None:
        """Remove what a crash left, then the oldest results, until all fit together with *newest*, which stays."""
        with self._lock:
            self._total += newest.size_bytes
            most = self._max_total_bytes - self._beside()
            if self._total <= most:
                return
            entries = self._survey(directory)
            self._total = sum(entry.size for entry in entries)
            for entry in sorted(entries, key=lambda entry: (entry.meta is not None, entry.since, entry.modified)):
                removable = entry.size and entry.handle != newest.handle
                if self._total > most and removable and _remove(directory, entry):
                    LOG.info("a stored result of %d bytes was removed: output.max_total_bytes is reached", entry.size)
                    self._total -= entry.size

    def has_expired(self, handle: str, owner: str) -> bool:
        """Tell whether this owner's result was removed here because of its age."""
        return self._expired.get(handle) == owner

    def _remember(self, entry: ResultEntry) -> None:
        if entry.meta:
            self._expired[entry.handle] = entry.meta.owner
        if len(self._expired) > REMEMBERED:
            del self._expired[next(iter(self._expired))]

    def _survey(self, directory: ResultDirectory) -> list[ResultEntry]:
        try:
            known = dict(self._entries(directory))
        except OSError as error:
            LOG.warning("stored results could not be cleaned up: %s", error.strerror)
            return list(self._known.values())
        self._known = known
        return list(known.values())

    def _entries(self, directory: ResultDirectory) -> Iterator[tuple[Stamp, ResultEntry]]:
        groups: dict[str, dict[str, ResultFile]] = {}
        for file in directory.files():
            groups.setdefault(file.handle, {})[file.suffix] = file
        for handle, files in groups.items():
            with suppress(FileNotFoundError):  # another cleaner was quicker
                stamp = _stamp(handle, files.get(META))
                known = self._known.get(stamp)
                yield stamp, known if known and known.meta else _entry(directory, handle, files)


def _stamp(handle: str, meta: ResultFile | None) -> Stamp:
    if meta is None:
        return handle, 0, 0, 0
    status = meta.status()
    return handle, status.st_ino, status.st_mtime_ns, status.st_size


def _entry(directory: ResultDirectory, handle: str, files: Mapping[str, ResultFile]) -> ResultEntry:
    meta = None
    if META in files and CONTENT in files:
        with suppress(OSError):  # it cannot be read: then it is damaged
            meta = directory.meta(handle)
    if meta and meta.size_bytes != files[CONTENT].status().st_size:
        meta = None
    found = [file.status() for file in files.values()]
    modified = datetime.fromtimestamp(max(status.st_mtime for status in found), UTC)
    if meta:
        return ResultEntry(handle, tuple(files), modified, meta.size_bytes, meta)
    is_new = datetime.now(UTC) - modified < NEW
    return ResultEntry(handle, tuple(files), modified, 0 if is_new else sum(status.st_size for status in found))


def _remove(directory: ResultDirectory, entry: ResultEntry) -> bool:
    """Return whether it is removed: what is being written now is not."""
    try:
        # In this order: a writer lets go of its lock only after its meta stands.
        if META not in entry.suffixes and (
            directory.is_being_written(entry.handle) or directory.exists(file_name(entry.handle, META))
        ):
            return False
        directory.remove(entry.handle, entry.suffixes)
    except OSError as error:
        LOG.warning("a stored result could not be removed: %s", error.strerror)
        return False
    return True
