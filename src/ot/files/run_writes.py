"""RunWrites: what one run may still write: how many bytes, and which unknown names its user has agreed to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from threading import Lock

from ot.files.protected_paths import Names, UnknownPlace
from ot.files.run_images import RunImages

MAX_BYTES = 256 << 20
MAX_SHOWN = 300


class AsksFirst(PermissionError):
    """The user must agree before these places are written; nothing has been written yet."""

    def __init__(self, places: Iterable[UnknownPlace]) -> None:
        """Name the places."""
        self.places = tuple(places)
        super().__init__(f"{self.why}, so its user must agree first")

    @property
    def names(self) -> list[str]:
        """The last name of each place, as a setting would allow it."""
        return [*dict.fromkeys(place.path[-1] for place in self.places)]

    @property
    def why(self) -> str:
        """Why they are asked about."""
        shown, more = ", ".join(repr(_end_of(place.shown)) for place in self.places[:10]), len(self.places) - 10
        listed = f"{shown} and {more} more" if more > 0 else shown
        return f"it writes {listed}: other programs execute some files whose names begin with a dot without asking"


def _end_of(path: str) -> str:
    """Return so much of a path as a person reads, with its last name."""
    return path if len(path) <= MAX_SHOWN else f"...{path[-MAX_SHOWN:]}"


class RunWrites:
    """Counts what a run writes, and knows what may be written in it beyond the ordinary."""

    _images: RunImages | None = None
    _is_over = False

    def __init__(self, most: int = MAX_BYTES) -> None:
        """Allow *most* bytes."""
        self._most = self._left = most
        self.take_room: Callable[[int], None] = lambda size: None
        """Raises OSError where there is no room for so much more."""
        self.answers: dict[Names, str] = {}
        """Why the user does not agree to unknown places, by their real paths; empty for those agreed to."""
        self.asking = asyncio.Lock()
        self.make_images: Callable[[], RunImages | None] = lambda: None
        """Returns what keeps the run's images, once it changes something."""
        self._lock = Lock()

    @property
    def images(self) -> RunImages | None:
        """Keeps what was there before the run changed it, for an undo; None: nothing is kept."""
        with self._lock:  # calls change files on several threads
            if self._images is None and (images := self.make_images()):
                self._images = images
                if self._is_over:  # a call that was given up changes something late
                    images.close()
            return self._images

    def close(self) -> None:
        """Let go of what keeps images: the run is over."""
        with self._lock:
            self._is_over = True
            if self._images:
                self._images.close()

    def spend(self, size: int) -> None:
        """Count *size* bytes that are about to be written, or 0 for a new name; growth without data counts too.

        Raises:
            OSError: Fewer are left.
        """
        if size > self._left:
            most = f"a run may write {self._most:,} bytes in all (limits.file_bytes)"
            raise OSError(f"{most}, {self._left:,} of them are left, and it would take {size:,}")
        self.take_room(size)
        self._left -= size

    def require_agreed(self, places: Iterable[UnknownPlace]) -> None:
        """Check that the user has agreed to all *places*, or raise AsksFirst."""
        if unknown := {place.path: place for place in places if self.answers.get(place.path) != ""}:
            raise AsksFirst(unknown.values())


writes_of_run: ContextVar[RunWrites] = ContextVar("ot_run_writes")
"""What the run may write in whose name a path is opened; without one nobody can agree to anything."""


def current_writes() -> RunWrites:
    """Return the write budget of the current run; outside of a run, that of one call."""
    return writes_of_run.get(None) or RunWrites()
