"""Rows: what statistics record about a run, a call and a connection; never arguments, values or texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from ot.execution.caller import Caller

CLI = "cli"
"""The client name of ``onetool run``."""


class RunRow(NamedTuple):
    """One run: sizes in characters, time in milliseconds, the class of its error, if any.

    ``tool_chars`` is what tools returned into the program, ``ot_chars`` what the ``ot`` pack did. ``tolerated`` names
    the rows of the table of tolerances by which the program was read.
    """

    ts: float
    principal: str
    client: str
    run: str
    chars_in: int
    chars_out: int
    duration_ms: float
    error_type: str
    calls: int
    tool_chars: int
    ot_chars: int
    engine: str
    tolerated: tuple[str, ...] = ()

    @property
    def kept_out(self) -> int:
        """Characters that this run kept out of the model's context; negative if it only added some."""
        # What the ot pack says is the price of finding tools and of paging: it counts against the gain.
        return max(0, self.tool_chars - self.chars_out) - min(self.ot_chars, self.chars_out)


class CallRow(NamedTuple):
    """One tool call; ``source`` is the kind of backend that carried it out."""

    ts: float
    principal: str
    client: str
    run: str
    tool: str
    pack: str
    duration_ms: float
    error_type: str
    chars_returned: int
    source: str


class ConnectionRow(NamedTuple):
    """One client that ran programs: what a flat list of all tools would have taken, and what ours takes."""

    ts: float
    principal: str
    client: str
    flat_chars: int
    our_chars: int


type StatsRow = RunRow | CallRow | ConnectionRow


class RunObserver(Protocol):
    """Watches runs."""

    def run_finished(self, run: RunRow) -> None:
        """Record a run that has ended; must be quick and must not raise."""
        ...


class RunBegun(NamedTuple):
    """A run that begins."""

    caller: Caller
    run: str
    engine: str
    in_session: bool = False


type OpenRunSpan = Callable[[RunBegun], Callable[[RunRow], None]]
"""Begins the span of a run, and returns what ends it; neither may raise."""
