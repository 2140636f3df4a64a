"""ForkedSession: a child that outlives its run and takes further programs, in the same jail."""

from __future__ import annotations

from ot.config.models import Limits
from ot.errors import EngineCrashed, RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.child_process import Child
from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.engines.forked_run import ForkedRun, StillbornRun
from ot.runtime.engines.ready_children import ReadyChildren, Room
from ot.runtime.program import Program

RUNS_OF_COMPUTING = 200
"""The kernel's own clock of computing counts all runs of a child; the server's holds each run to its limit."""


class ForkedSession:
    """Keeps one child; whatever ends the child ends the session."""

    def __init__(self, children: ReadyChildren) -> None:
        """Fork the child from *children* when the first program comes."""
        self._children = children
        self._child: Child | None = None
        self._runs = 0
        self._why = ""

    @property
    def lost(self) -> str:
        """Why the variables are gone; empty while they are kept."""
        if not self._why and self._child is not None and not self._child.is_alive():
            self._why = "its process ended, or a thread of an earlier program went on by itself"
            self._child.kill()
        return self._why

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome.

        Raises:
            RunError: It ended without one.
        """
        self._runs += 1
        run = ForkedRun(program, reach, limits, deadline, keep=self._runs)
        try:
            if self._child is None:
                room = Room(limits.memory_mb << 20, limits.cpu_seconds * RUNS_OF_COMPUTING)
                self._child = await self._children.fork_apart(room)
            return await run.drive(self._child)
        except StillbornRun as error:
            # Not tried again: the variables went with the process.
            self._note(str(error))
            raise EngineCrashed(str(error)) from None
        except RunError as error:
            error.printed = run.printed.text()
            self._note(str(error))
            raise
        finally:
            self._note("its last run was cancelled")

    def _note(self, why: str) -> None:
        if not self._why and (self._child is None or self._child.gone):
            self._why = why

    async def aclose(self) -> None:
        """End the child."""
        self._why = self._why or "it was ended"
        if self._child is not None:
            self._child.kill()
