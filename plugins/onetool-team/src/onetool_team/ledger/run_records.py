"""RunRecords: the seam at which an operator asks for the runs and calls of everybody, wherever the ledger is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ot.ledger.background_run import RunStatus

MOST_LISTED = 100


class CountedRecords(Protocol):
    """Records of everybody, such as the runs and calls of a ledger."""

    async def count(self, principal: str) -> Mapping[str, int]:
        """Return how many there are of *principal*, by what they are: ``runs`` in the background before ``calls``."""
        ...

    async def forget(self, principal: str) -> None:
        """Keep nothing of *principal*, not even what has not ended."""
        ...


class RunRecords(CountedRecords, Protocol):
    """What is asked beside a ``KeptLedger``, which needs to know whose a run is; raises LedgerUnavailable like that."""

    async def latest(self, people: Sequence[str], most: int = MOST_LISTED) -> list[RunStatus]:
        """Return the latest background runs of *people*, and all that have not ended, the latest first."""
        ...

    async def whose(self, id: str, people: Sequence[str]) -> str:
        """Return who has a run, in the background or of which calls are known; nothing for an unknown one.

        A store that has no names in plain text looks among *people*.
        """
        ...

    async def list_workers(self) -> list[dict[str, object]]:
        """Return the workers of background runs that are alive, and when each was seen."""
        ...
