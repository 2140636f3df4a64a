"""ResultObjects: everybody's results in one object store; the door through which the library for it is imported."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from threading import Lock, Thread

from onetool_team.results.object_blobs import ObjectBlobs
from onetool_team.results.object_cleanup import ListedObject, is_over, removed
from onetool_team.results.object_layout import FOLDER
from onetool_team.results.object_place import ObjectPlace
from ot.config.models import Output

LOG = logging.getLogger(__name__)

SWEEP_SECONDS = 3600.0
FIRST_SWEEP_SECONDS = 60.0
SWEEP_MOST = 20_000
"""Expired results of people who store nothing more: looked for this often, among at most so many objects."""


class ResultObjects:
    """Gives each owner a part of one store, and now and then removes what has expired of everybody's."""

    def __init__(
        self, output: Output, clock: Callable[[], float] = time.time, hide: Callable[[str], str] = str
    ) -> None:
        """Open the store that ``output.store`` names; nothing is asked of it yet. *hide* makes names of owners secret.

        Raises:
            ConfigError: It cannot be opened.
        """
        self._output = output
        self._clock = clock
        self._hide = hide
        self._place = ObjectPlace(output.store)
        self._lock = Lock()
        self._owners: dict[str, ObjectBlobs] = {}
        self._next_sweep = time.monotonic() + FIRST_SWEEP_SECONDS

    def blobs_of(self, owner: str) -> ObjectBlobs:
        """Return the place of *owner*'s results."""
        with self._lock:
            if time.monotonic() >= self._next_sweep:
                self._next_sweep = time.monotonic() + SWEEP_SECONDS
                Thread(target=self.sweep, name="result sweep", daemon=True).start()
            if owner not in self._owners:
                self._owners[owner] = self._new_blobs(owner)
            return self._owners[owner]

    def sweep(self) -> None:
        """Remove what has expired, whoever stored it."""
        ttl = timedelta(seconds=self._output.result_ttl)
        try:
            for entry in map(ListedObject.from_entry, islice(self._place.list_objects(FOLDER), SWEEP_MOST)):
                if is_over(entry, self._clock(), ttl):
                    removed(self._place, entry)
            self._place.remove_unfinished(SWEEP_SECONDS)
        except OSError as error:
            LOG.warning("expired results could not be looked for: %s", error.strerror)

    def _new_blobs(self, owner: str) -> ObjectBlobs:
        output = self._output
        return ObjectBlobs(
            self._place,
            self._hide(owner),
            ttl=output.result_ttl,
            max_total_bytes=output.max_total_bytes,
            clock=self._clock,
        )
