"""RunPlace: what a background run needs of the workspace that it is carried out in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ot.config.models import Background
from ot.execution.caller import AskUser, Caller
from ot.runtime.program import Program
from ot.runtime.reply import Reply
from ot.runtime.run_budget import RunStart


class RunPlace(Protocol):
    """The workspace of whoever asked for the run."""

    @property
    def background(self) -> Background:
        """The settings of background runs."""
        ...

    def way_to_terminal(self, run: str) -> AskUser | None:
        """Return how to ask a person at a terminal for the background *run*; None if that is not possible."""
        ...

    async def run(self, command: str, caller: Caller | None = None, *, background: RunStart | None = None) -> Reply:
        """Answer a command of *caller*."""
        ...

    async def read_program(self, command: str) -> tuple[Program, Mapping[str, str]]:
        """Return the program of *command*, and by pack that it uses what tells whether that pack has changed.

        Raises:
            OneToolError: It cannot be read.
        """
        ...

    def changes_something(self, tool: str) -> bool:
        """Return whether a call of *tool* has an entry in the ledger."""
        ...

    async def keep(self, value: Any, principal: str, tool: str) -> str:
        """Store *value* for *principal* and return its handle.

        Raises:
            ResultError: It could not be stored.
        """
        ...


type EnterPlace = Callable[[str], AbstractAsyncContextManager[RunPlace]]
"""Opens the workspace of a principal, for as long as a run needs it."""
