"""RunBook: the seam at which background runs are kept; whoever carries one out is fenced by the number of its start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ot.execution.ledger import Ledger
from ot.ledger.background_run import BackgroundRun, RunEnd, RunStatus
from ot.ledger.entries import LedgerEntry

LEASE_SECONDS = 10.0
"""How long a start may be silent before another takes its place."""
BEAT_SECONDS = 1.0
FENCED = "the run was started again elsewhere, or has ended"
CANCELLED_WAITING = "it was cancelled before it began"


@dataclass(frozen=True, slots=True)
class Start:
    """One attempt to carry a run out."""

    run: BackgroundRun
    number: int
    """1 for the first; 0 when nothing is to be done, because the run has ended or another start is alive."""
    alive: bool = False
    """Whether a start of another process has beaten within its lease."""
    end: RunEnd | None = None
    cancelled: bool = False
    effects: Sequence[LedgerEntry] = ()
    """What earlier starts wrote into the ledger."""


@dataclass(frozen=True, slots=True)
class Beat:
    """What whoever carries a run out learns with each beat."""

    fenced: bool = False
    """Another start has taken its place, or the run has ended: it must stop at once, and end nothing."""
    cancelled: bool = False
    answer: Mapping[str, Any] | None = None
    """The answer to the question that it asks, once there is one."""


class RunBook(Protocol):
    """Keeps background runs over crashes; every method raises LedgerUnavailable when it cannot be reached."""

    async def add(self, run: BackgroundRun, most_open: int) -> None:
        """Keep a new run, which waits.

        Raises:
            TooManyRuns: *most_open* runs of its principal have not ended.
        """
        ...

    async def begin(self, id: str) -> Start | None:
        """Return the next start of a run, or nothing for an unknown one; earlier starts are fenced from now on."""
        ...

    async def use_packs(self, id: str, start: int, packs: Mapping[str, str]) -> Mapping[str, str]:
        """Note what tells the packs of the run from others of their names; return what was noted first.

        Raises:
            RunFenced: Another start has taken the place of this one.
        """
        ...

    async def beat(self, id: str, start: int) -> Beat:
        """Show that this start is alive, and learn what is wanted of it."""
        ...

    async def ask(self, id: str, start: int, question: Mapping[str, Any] | None) -> None:
        """Have the run ask *question*, which has a number of its own under ``number``; None: it goes on."""
        ...

    async def answer(self, principal: str, id: str, number: int, answer: Mapping[str, Any]) -> bool:
        """Answer question *number*, which the run asks no more; return False when it does not ask it."""
        ...

    async def end(self, id: str, start: int, end: RunEnd) -> bool:
        """Write how the run ended; return False for a start that is fenced, whose word does not count."""
        ...

    async def cancel(self, principal: str, id: str) -> RunStatus | None:
        """Want the run to end; one that waits has ended with that."""
        ...

    async def status(self, principal: str, id: str) -> RunStatus | None:
        """Return what is known about a run of *principal*."""
        ...

    async def runs(self, principal: str, most: int = 100, directory: str | None = None) -> list[RunStatus]:
        """Return the runs of *principal*, all or those begun in *directory*, the latest first."""
        ...

    async def list_left_behind(self) -> list[str]:
        """Return the runs that have not ended and that nobody alive carries out."""
        ...


class KeptLedger(Ledger, RunBook, Protocol):
    """Keeps calls and background runs over crashes; every read raises LedgerUnavailable when it cannot be reached."""

    async def of_run(self, principal: str, run: str, directory: str | None = None) -> list[LedgerEntry]:
        """Return the calls of a run of *principal*, as they were made; with *directory* only those made there."""
        ...

    async def unknown(self, principal: str, most: int = 100, directory: str | None = None) -> list[LedgerEntry]:
        """Return the latest calls of *principal*, all or of *directory*, whose effect is unknown, latest first."""
        ...

    async def health(self) -> Mapping[str, str]:
        """Describe the ledger and its durability, without opening it."""
        ...

    async def aclose(self) -> None:
        """Write what is there, and show that this writer has ended."""
        ...
