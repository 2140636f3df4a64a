"""Roster: the seam at which is kept who uses a team's server, since when, how much, and when last."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from onetool_team.state.shared_state import StateUnavailable
from onetool_team.workspaces import PEOPLE, directory_name
from ot.files.no_links import make_private
from ot.files.private_file import write_private
from ot.stats.rows import RunRow

logger = logging.getLogger(__name__)

SEEN_FILE = "seen.json"
WRITE_SECONDS = 5.0
MINUTE = 60.0
MOST_REMEMBERED = 100_000
"""Of the runs of the last minute, whose each was."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One principal, as it was seen from ``first`` to ``last``; times in seconds since 1970."""

    principal: str
    first: float
    last: float
    runs: int = 0
    chars: int = 0
    """Characters that its runs answered."""

    def plus(self, other: Seen) -> Seen:
        """Return both together."""
        first, last = min(self.first, other.first), max(self.last, other.last)
        return Seen(self.principal, first, last, self.runs + other.runs, self.chars + other.chars)


class Roster(Protocol):
    """Keeps who was seen; every method raises StateUnavailable when it cannot be reached."""

    async def add(self, seen: Sequence[Seen]) -> None:
        """Add what was seen since the last time."""
        ...

    async def people(self) -> list[Seen]:
        """Return everybody, who was seen last first."""
        ...

    async def forget(self, principal: str) -> None:
        """Keep nothing of *principal*."""
        ...


class FileRoster:
    """A file in the directory that each principal has beside the configuration, for a server of one process."""

    def __init__(self, global_dir: Path) -> None:
        """Keep them below *global_dir*."""
        self._people = global_dir / PEOPLE

    async def add(self, seen: Sequence[Seen]) -> None:
        """Add what was seen."""
        await asyncio.to_thread(self._add, seen)

    async def people(self) -> list[Seen]:
        """Return everybody, who was seen last first."""
        files = await asyncio.to_thread(lambda: sorted(self._people.glob(f"*/{SEEN_FILE}")))
        return sorted(filter(None, map(_read, files)), key=lambda one: -one.last)

    async def forget(self, principal: str) -> None:
        """Keep nothing of *principal*."""
        self._file(principal).unlink(missing_ok=True)

    def _file(self, principal: str) -> Path:
        return self._people / directory_name(principal) / SEEN_FILE

    def _add(self, seen: Sequence[Seen]) -> None:
        for one in seen:
            file = self._file(one.principal)
            known = _read(file)
            try:
                make_private(file.parent)
                write_private(file, json.dumps(asdict(known.plus(one) if known else one)))
            except OSError as error:
                raise StateUnavailable(f"{file} cannot be written: {error.strerror or error}") from None


def _read(file: Path) -> Seen | None:
    try:
        found: Any = json.loads(file.read_bytes())
        return Seen(**{name: found[name] for name in Seen.__slots__})
    except (OSError, ValueError, KeyError, TypeError):
        return None


class RosterWriter:
    """Watches runs, and adds whose they were to the roster every few seconds."""

    def __init__(self, roster: Roster, clock: Callable[[], float] = time.time) -> None:
        """Add to *roster*."""
        self._roster = roster
        self._clock = clock
        self._new: dict[str, Seen] = {}
        self._latest: deque[tuple[float, str]] = deque(maxlen=MOST_REMEMBERED)
        self._writing: asyncio.Task[None] | None = None

    def run_finished(self, run: RunRow) -> None:
        """Take note of a run that has ended."""
        now = self._clock()
        seen = Seen(run.principal, now, now, 1, run.chars_out)
        known = self._new.get(run.principal)
        self._new[run.principal] = known.plus(seen) if known else seen
        self._latest.append((now, run.principal))

    def last_minute(self) -> Counter[str]:
        """Return how many runs each principal ended within the last minute."""
        since = self._clock() - MINUTE
        return Counter(principal for at, principal in self._latest if at >= since)

    def start(self) -> None:
        """Write from now on."""
        self._writing = self._writing or asyncio.ensure_future(self._write())

    async def flush(self) -> None:
        """Write what was seen; while the roster cannot be reached it waits."""
        new, self._new = self._new, {}
        try:
            if new:
                await self._roster.add(list(new.values()))
        except StateUnavailable as error:
            logger.info("who was seen is noted later: %s", error)
            for seen in new.values():
                known = self._new.get(seen.principal)
                self._new[seen.principal] = known.plus(seen) if known else seen

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(WRITE_SECONDS)
            await self.flush()

    async def aclose(self) -> None:
        """Write what is left."""
        if self._writing:
            self._writing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._writing
        await self.flush()
