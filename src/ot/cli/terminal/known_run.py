"""KnownRun: what the ledger knows of one run, as it is shown to a person or to a program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ot.cli.terminal import columns, counted

if TYPE_CHECKING:
    from ot.ledger.background_run import RunStatus
    from ot.ledger.entries import LedgerEntry

LEFT = "nobody carries it out: its server has ended, and the next one started in its directory reports on it"


@dataclass(frozen=True)
class KnownRun:
    """A run, of which the calls that may have changed something are known; one in the foreground has no status."""

    id: str
    status: RunStatus | None
    effects: Sequence[LedgerEntry]
    left: bool = False
    """Whether it has not ended and nobody alive carries it out."""

    @property
    def state(self) -> str:
        """The state of a run in the background."""
        return self.status.state if self.status else ""

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen."""
        if self.status:
            return self.left or self.status.end is not None
        return all(entry.state != "sent" for entry in self.effects)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        calls = [entry.as_row() for entry in self.effects]
        if self.status is None:
            return {"id": self.id, "effects": calls}
        end, question = self.status.end, self.status.question
        return {
            **run_row(self.status, self.left),
            "command": self.status.run.command,
            "question": question and {"number": question["number"], "message": question["message"]},
            "end": end and end.as_json(),
            "effects": calls,
        }

    def state_lines(self) -> list[str]:
        """Return how it is: its state, what it asks, and what it came to."""
        if self.status is None:
            return [f"Run {self.id}, in the foreground"]
        run, starts, end = self.status.run, self.status.starts, self.status.end
        name = f" ({run.name})" if run.name else ""
        began = f", started {counted(starts, 'time')}" if starts else ""
        lines = [f"Run {self.id}{name}: {self.state}{began}, asked for at {_time(run.created)}"]
        lines += [f"note: {LEFT}"] if self.left else []
        if question := self.status.question:
            lines += [str(question["message"]), f"Answer it with: onetool runs answer {self.id}"]
        return lines + ([*end.texts, *([f"error: {end.error}"] if end.error else [])] if end else [])

    def effect_lines(self) -> list[str]:
        """Return a line for each call, below each other."""
        if not self.effects:
            return ["It called nothing that may change something."]
        return columns([_cells(entry) for entry in self.effects])

    def news(self) -> list[str]:
        """Return what may be new of a run that is followed."""
        return [*self.state_lines(), *("  ".join(filter(None, _cells(entry))) for entry in self.effects)]


def run_row(status: RunStatus, left: bool) -> dict[str, Any]:
    """Return a run in the background as a line of a list."""
    created = datetime.fromtimestamp(status.run.created, UTC).isoformat(timespec="seconds")
    row = {"id": status.run.id, "name": status.run.name, "state": status.state, "starts": status.starts}
    return row | {"created": created, "cancelled": status.cancelled, "left_behind": left}


def list_lines(statuses: Sequence[RunStatus]) -> list[str]:
    """Return runs in the background as a table."""
    cells = [[one.run.id, one.state, _time(one.run.created), one.run.name] for one in statuses]
    return columns([["id", "state", "created", "name"], *cells]) if cells else []


def _cells(entry: LedgerEntry) -> list[str]:
    return [entry.state, entry.tool, f"line {entry.line}" if entry.line else "", _time(entry.at), entry.key]


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
