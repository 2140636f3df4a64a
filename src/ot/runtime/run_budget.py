"""RunBudget: the time, calls and consent of a run, shared with every run that a tool starts inside it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from ot.config.models import Limits
from ot.errors import LimitExceeded
from ot.execution.consent import RunConsent
from ot.execution.deadline import Deadline
from ot.execution.language_model import OpenModel
from ot.files.run_writes import RunWrites

MAX_DEPTH = 4


class RunStart(NamedTuple):
    """One start of a run in the background: its run, its number, and the time that it has."""

    run_id: str
    number: int
    seconds: float


class RunBudget:
    """What is left of a run."""

    def __init__(self, limits: Limits, outer: RunBudget | None = None, seconds: float | None = None) -> None:
        """Start the clock, or share the clock and the calls of the run that this one is started in.

        A run in the background has *seconds*.
        """
        self.depth = outer.depth + 1 if outer else 1
        self.deadline = outer.deadline if outer else Deadline.after(seconds or limits.run_seconds)
        self.consent: RunConsent | None = outer.consent if outer else None
        """What the user of the outermost run has said: a run inside it has nobody else to ask."""
        self.writes: RunWrites = outer.writes if outer else RunWrites(limits.file_bytes)
        self.open_llm: OpenModel | None = outer.open_llm if outer else None
        self.calls = self.file_calls = 0
        self._most_calls, self._most_file_calls = limits.calls, limits.file_calls
        self._root = outer._root if outer else self

    @property
    def calls_used(self) -> tuple[int, int]:
        """The tool calls of the outermost run so far, and how many it may make."""
        return self._root.calls, self._root._most_calls

    def spend_call(self) -> None:
        """Count one tool call, on the outermost run's account.

        Raises:
            LimitExceeded: There are none left.
        """
        root = self._root
        root.calls += 1
        if root.calls > root._most_calls:
            raise LimitExceeded("calls", f"the run made more than {root._most_calls:,} tool calls")

    def spend_file_call(self) -> None:
        """Count one step of Python's own file functions, as above.

        Raises:
            LimitExceeded: There are none left.
        """
        root = self._root
        root.file_calls += 1
        if root.file_calls > root._most_file_calls:
            used = f"the run used files more than {root._most_file_calls:,} times"
            raise LimitExceeded("file_calls", f"{used}: use fewer, or use file.search")


current_budget: ContextVar[RunBudget | None] = ContextVar("ot_run_budget", default=None)
"""The budget of the run that the current task works for: a run started by a tool finds its parent's here."""
