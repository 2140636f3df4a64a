"""Removes results that are too old, too many, or that a crash left unfinished."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock

from ot.output.result_files import CONTENT, META, ResultDirectory, ResultFile, file_name
from ot.output.result_meta import ResultMeta, read_meta

LOG = logging.getLogger(__name__)

UNFINISHED = timedelta(hours=1)
"""How long unreadable leftovers stay when results are kept for ever."""

REMEMBERED = 1000
"""How many removed results are remembered, to say that they have expired and not that they never were."""

CROWD = 1000
"""For each so many results the directory is left alone for a second: listing them all at every store is too slow."""

Stamp = tuple[str, int, int, int]
"""A meta file as it was when it was read: handle, inode, time of change, size."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the directory holds under one handle; without a meta it is unfinished or damaged."""

    handle: str
    suffixes: tuple[str, ...]
    modified: datetime
    meta: ResultMeta | None = None

    @property
    def size(self) -> int:
        """How many bytes of content it has; what is unfinished does not count."""
        return self.meta.size_bytes if self.meta else 0

    @property
    def since(self) -> datetime:
        """When its time began."""
        return self.meta.created_at if self.meta else self.modified


def is_older(since: datetime, now: datetime, ttl: timedelta) -> bool:
    """Tell whether something is older than *ttl*: at exactly that age it still lives.

    When the clock was set back, what seems to come from the future is new.
    """
    return max(now - since, timedelta()) > ttl


class ResultCleanup:
    """Keeps one directory within its time and its size; several may clean the same directory."""

    def __init__(self, ttl: timedelta, max_total_bytes: int) -> None:
        self._ttl = ttl
        self._max_total_bytes = max_total_bytes
        self._lock = Lock()
        self._total = 0
        self._next_sweep = 0.0
        # A meta does not change, so each is parsed once and not at every store.
        self._known: dict[Stamp, Entry] = {}
        self._expired: dict[str, str] = {}

    def sweep(self, directory: ResultDirectory, now: datetime) -> None:
        """Remove what is older than the TTL, and what a crash left as long ago."""
        with self._lock:
            if time.monotonic() < self._next_sweep:
                return
            entries = self._survey(directory)
            over = [entry for entry in entries if self._is_over(entry, now)]
            for entry in over:
                self._remember(entry)
                _remove(directory, entry)
            self._total = sum(entry.size for entry in entries) - sum(entry.size for entry in over)
            self._next_sweep = time.monotonic() + len(entries) // CROWD

    def make_room(self, directory: ResultDirectory, newest: ResultMeta) -> None:
        """Remove the oldest results until all fit together with *newest*, which stays."""
        with self._lock:
            self._total += newest.size_bytes
            if self._total <= self._max_total_bytes:
                return
            entries = self._survey(directory)
            self._total = sum(entry.size for entry in entries)
            for entry in sorted(entries, key=lambda entry: (entry.since, entry.modified)):
                if self._total > self._max_total_bytes and entry.meta and entry.handle != newest.handle:
                    LOG.info("a stored result of %d bytes was removed: output.max_total_bytes is reached", entry.size)
                    _remove(directory, entry)
                    self._total -= entry.size

    def has_expired(self, handle: str, owner: str) -> bool:
        """Tell whether this owner's result was removed here because of its age."""
        return self._expired.get(handle) == owner

    def _is_over(self, entry: Entry, now: datetime) -> bool:
        if entry.meta:
            return bool(self._ttl) and is_older(entry.since, now, self._ttl)
        return is_older(entry.since, now, self._ttl or UNFINISHED)

    def _remember(self, entry: Entry) -> None:
        if entry.meta:
            self._expired[entry.handle] = entry.meta.owner
        if len(self._expired) > REMEMBERED:
            del self._expired[next(iter(self._expired))]

    def _survey(self, directory: ResultDirectory) -> list[Entry]:
        try:
            known = dict(self._entries(directory))
        except OSError as error:
            LOG.warning("stored results could not be cleaned up: %s", error.strerror)
            return list(self._known.values())
        self._known = known
        return list(known.values())

    def _entries(self, directory: ResultDirectory) -> Iterator[tuple[Stamp, Entry]]:
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


def _entry(directory: ResultDirectory, handle: str, files: Mapping[str, ResultFile]) -> Entry:
    meta = None
    if META in files and CONTENT in files:
        with suppress(OSError):  # it cannot be read: then it is damaged
            meta = read_meta(directory, handle)
    if meta and meta.size_bytes != files[CONTENT].status().st_size:
        meta = None
    return Entry(handle, tuple(files), _last_modified(files.values()), meta)


def _last_modified(files: Iterable[ResultFile]) -> datetime:
    return datetime.fromtimestamp(max(file.status().st_mtime for file in files), UTC)


def _remove(directory: ResultDirectory, entry: Entry) -> None:
    try:
        if META in entry.suffixes or not _is_live(directory, entry.handle):
            directory.remove(entry.handle, entry.suffixes)
    except OSError as error:
        LOG.warning("a stored result could not be removed: %s", error.strerror)


def _is_live(directory: ResultDirectory, handle: str) -> bool:
    # In this order: a writer lets go of its lock only after its meta stands.
    return directory.is_being_written(handle) or directory.exists(file_name(handle, META))
