"""RunTrail: what is known of one run while it goes on."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from ot.execution.caller import Caller
from ot.runtime.engines.engine import Outcome
from ot.runtime.pack_proxy import PackProxy
from ot.runtime.program import Program
from ot.runtime.run_budget import RunBudget
from ot.runtime.run_events import TellEvent, telling

_current_task = cast("Callable[[], asyncio.Task[Any]]", asyncio.current_task)
"""A run is always in a task."""


@dataclass
class RunTrail:
    """How far one run has come, for its reply, and for who watches it."""

    caller: Caller
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    start: int = 0
    seconds: float | None = None
    """How long a run in the background may take."""
    tell: TellEvent | None = None
    session: str = ""
    format: str | None = None
    """The format of the reply, where the program asks for none."""
    started: float = field(default_factory=time.monotonic)
    program: Program | None = None
    packs: PackProxy | None = None
    called: tuple[str, str] | None = None
    """The tool that is called without a program."""
    bare: bool = False
    """Whether nothing is to be written out: another program wants the value."""
    outcome: Outcome | None = None
    directory: str = ""
    budget: RunBudget | None = None
    task: asyncio.Task[Any] = field(default_factory=_current_task)
    is_watched: bool = False
    """Whether what it does is told to those who watch."""
    called_off: bool = False
    """Whether who watches has cancelled it."""

    @property
    def tolerated(self) -> list[str]:
        """The rows of the table of tolerances that were used."""
        found = (self.program, self.packs, self.outcome)
        return list(dict.fromkeys(row for part in found if part for row in part.tolerated))

    @property
    def asking(self) -> Caller:
        """The caller; observers hear of its questions."""
        ask = self.caller.ask
        return self.caller.with_ask(telling(ask, self.run_id, self.tell)) if ask and self.tell else self.caller

    @property
    def single_call(self) -> tuple[str, str] | None:
        return self.program.single_call if self.program else self.called

    @property
    def tools(self) -> list[str]:
        return self.packs.tools_called if self.packs else []

    def cancel(self) -> None:
        """End the run; its reply says who did."""
        self.called_off = True
        self.task.cancel()
