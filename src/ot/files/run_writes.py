"""RunWrites: what one run may still write: how many bytes, and which unknown names its user has agreed to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextvars import ContextVar

from ot.files.protected_paths import Names, UnknownPlace

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

    def __init__(self, most: int = MAX_BYTES) -> None:
        """Allow *most* bytes."""
        self._most = self._left = most
        self.answers: dict[Names, str] = {}
        """Why the user does not agree to unknown places, by their real paths; empty for those agreed to."""
        self.asking = asyncio.Lock()

    def spend(self, size: int) -> None:
        """Count *size* bytes that are about to be written; what a file grows by without data counts too.

        Raises:
            OSError: Fewer are left.
        """
        if size > self._left:
            most = f"a run may write {self._most:,} bytes in all (limits.file_bytes)"
            raise OSError(f"{most}, {self._left:,} of them are left, and it would take {size:,}")
        self._left -= size

    def require_agreed(self, places: Iterable[UnknownPlace]) -> None:
        """Return when the user has agreed to all *places*.

        Raises:
            AsksFirst: To some of them not yet.
        """
        if unknown := {place.path: place for place in places if self.answers.get(place.path) != ""}:
            raise AsksFirst(unknown.values())


writes_of_run: ContextVar[RunWrites] = ContextVar("ot_run_writes")
"""What the run may write in whose name a path is opened; without one nobody can agree to anything."""


def current_writes() -> RunWrites:
    """Return what the current run may write; outside of a run, as much as one call might."""
    return writes_of_run.get(None) or RunWrites()
