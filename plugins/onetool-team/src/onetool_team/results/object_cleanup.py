"""ObjectCleanup: keeps one owner's results within their time and size, beside the replies and never in their way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread
from typing import Any

from onetool_team.results.object_place import ObjectPlace
from ot.output.result_blobs import is_older

LOG = logging.getLogger(__name__)

LIST_SECONDS = 60.0
"""A folder is listed at most this often, unless it seems too full; other replicas' results count from then on."""
SLACK = 0.9
"""When there is too much, it is brought down to this share, so that not every further result is one too many."""
CLOCKS = timedelta(minutes=15)
"""How far the store's clock may be off: S3 refuses requests beyond that."""
REMEMBERED = 1000
"""Handles that are known by heart: the latest that were stored here, and the latest that expired here."""


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object as the store lists it."""

    key: str
    size: int
    since: datetime

    @classmethod
    def from_entry(cls, entry: Any) -> ListedObject:
        """Return what the store's *entry* says."""
        return cls(entry["path"], entry["size"], entry["last_modified"])

    @property
    def handle(self) -> str:
        """The result's handle."""
        return self.key.rpartition("/")[2]


class ObjectCleanup:
    """Counts what is added to one folder, and lists and clears it in a thread of its own when that is due."""

    def __init__(
        self, place: ObjectPlace, folder: str, *, ttl: float, max_total_bytes: int, clock: Callable[[], float]
    ) -> None:
        """List nothing yet."""
        self._place = place
        self._folder = folder
        self._ttl = timedelta(seconds=ttl)
        self._most = max_total_bytes
        self._clock = clock
        self._lock = Lock()
        self._total = 0
        self._next_listing = 0.0
        self._working: Thread | None = None
        self._expired: dict[str, None] = {}
        self._stored: dict[str, int] = {}
        self._count = 0

    def note_start(self, handle: str) -> None:
        """Take note of a result before it can be listed: the newest is not the one to remove."""
        with self._lock:
            self._count += 1
            _remember(self._stored, handle, self._count)

    def add(self, size: int) -> None:
        """Count a result that was stored; start looking after the folder where that is due."""
        with self._lock:
            self._total += size
            is_due = self._total > self._most or time.monotonic() >= self._next_listing
            if is_due and self._working is None:
                self._working = Thread(target=self._work, name="result cleanup", daemon=True)
                self._working.start()

    def settle(self, seconds: float) -> None:
        """Wait until nothing is under way."""
        if working := self._working:
            working.join(seconds)

    def has_expired(self, handle: str) -> bool:
        """Tell whether it was removed here because of its age."""
        return handle in self._expired

    def _work(self) -> None:
        try:
            before = self._total
            total = self._clear()
            with self._lock:
                self._total += total - before
        except OSError as error:
            LOG.warning("stored results could not be cleaned up: %s", error.strerror)
        finally:
            self._next_listing = time.monotonic() + LIST_SECONDS
            self._working = None

    def _clear(self) -> int:
        """Remove what is too old, then the oldest of what is too much; return the bytes that are left."""
        kept = sorted(map(ListedObject.from_entry, self._place.list_objects(self._folder)), key=self._age)
        kept = [entry for entry in kept if not self._is_removed_for_age(entry)]
        total = sum(entry.size for entry in kept)
        most = self._most * SLACK if total > self._most else self._most
        for entry in kept[:-1]:
            if total <= most:
                break
            if removed(self._place, entry):
                LOG.info("a stored result of %d bytes was removed: output.max_total_bytes is reached", entry.size)
                total -= entry.size
        return total

    def _age(self, entry: ListedObject) -> tuple[datetime, int]:
        # S3 tells whole seconds: within one, the order in which they were stored here decides.
        return entry.since, self._stored.get(entry.handle, 0)

    def _is_removed_for_age(self, entry: ListedObject) -> bool:
        if not is_over(entry, self._clock(), self._ttl) or not removed(self._place, entry):
            return False
        _remember(self._expired, entry.handle, None)
        return True


def _remember[T](known: dict[str, T], handle: str, value: T) -> None:
    known[handle] = value
    if len(known) > REMEMBERED:
        del known[next(iter(known))]


def is_over(entry: ListedObject, now: float, ttl: timedelta) -> bool:
    """Return whether a result is so old that it has expired by any clock; without a *ttl* none ever is."""
    return bool(ttl) and is_older(entry.since, datetime.fromtimestamp(now, UTC), ttl + CLOCKS)


def removed(place: ObjectPlace, entry: ListedObject) -> bool:
    """Remove an object, and return whether it is gone."""
    try:
        place.delete(entry.key)
    except FileNotFoundError:
        pass  # another replica was quicker
    except OSError:
        return False
    return True
