"""KnownRun: what the ledger knows of one run, as it is shown to a person or to a program."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ot.brief_repr import quoted_text
from ot.cli.terminal import columns, counted

if TYPE_CHECKING:
    from ot.ledger.background_run import RunStatus
    from ot.ledger.entries import LedgerEntry

MAX_PLACE = 200
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
        """Return how it is: its state, and what it asks."""
        if self.status is None:
            place = next((entry.directory for entry in self.effects if entry.directory), "")
            return [f"Run {self.id}, in the foreground" + (f", in {quoted_text(place, MAX_PLACE)}" if place else "")]
        run, starts = self.status.run, self.status.starts
        began = f", started {counted(starts, 'time')}" if starts else ""
        origin = f", {run.origin}" if run.origin else ""
        lines = [f"Run {self.id}: {self.state}{began}, asked for at {_time(run.created)}{origin}"]
        lines += [f"note: {LEFT}"] if self.left else []
        if question := self.status.question:
            lines += [str(question["message"]), f"Answer it with: onetool answer {self.id}"]
        return lines

    def reply_lines(self) -> list[str]:
        """Return what the program itself said, marked line by line: it must not be taken for what we say of it."""
        end = self.status.end if self.status else None
        if end is None:
            return []
        said = "\n".join([*end.texts, *([f"error: {end.error}"] if end.error else [])])
        return ["\n  | ".join(["Its reply:", *said.splitlines()])] if said else []

    def effect_lines(self) -> list[str]:
        """Return a line for each call, below each other."""
        if not self.effects:
            return ["It called nothing that may change something."]
        return columns([_cells(entry) for entry in self.effects])

    def news(self) -> list[str]:
        """Return what may be new of a run that is followed."""
        calls = ("  ".join(filter(None, _cells(entry))) for entry in self.effects)
        return [*self.state_lines(), *calls, *self.reply_lines()]


def run_row(status: RunStatus, left: bool) -> dict[str, Any]:
    """Return a run in the background as a line of a list."""
    run = status.run
    created = datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds")
    row = {"id": run.id, "name": run.name, "directory": run.directory, "state": status.state, "starts": status.starts}
    return row | {"created": created, "cancelled": status.cancelled, "left_behind": left}


def list_lines(statuses: Sequence[RunStatus]) -> list[str]:
    """Return runs in the background as a table."""
    cells = [[one.run.id, one.state, _time(one.run.created), one.run.origin] for one in statuses]
    return columns([["id", "state", "created", "where, name"], *cells]) if cells else []


def _cells(entry: LedgerEntry) -> list[str]:
    return [entry.state, entry.tool, f"line {entry.line}" if entry.line else "", _time(entry.at), entry.key]


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
