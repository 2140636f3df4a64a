"""ForkedEngine: programs run by CPython itself, each in a child forked from a warm interpreter, or in a session's."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable
from typing import Any

from ot.config.models import Limits
from ot.errors import EngineCrashed, Overloaded, RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import EngineHealth, Outcome, Reach, StillbornRun
from ot.runtime.engines.forked.child_process import Child
from ot.runtime.engines.forked.forked_run import AnswerTurns, ForkedRun
from ot.runtime.engines.forked.jail.channel import Room
from ot.runtime.engines.forked.ready_children import NOTHING_RAN, ReadyChildren
from ot.runtime.engines.forked.zygote_process import JailReport, ZygoteProcess
from ot.runtime.program import Program


class ForkedEngine:
    """Runs each program in a child of its own; what holds the child is the zygote's affair."""

    name = "forked"

    def __init__(
        self,
        start: Callable[[], ZygoteProcess],
        *,
        check: Callable[[JailReport], None] = lambda found: None,
        processes: int = 64,
        ready: int = 6,
        queue_seconds: float = 10.0,
    ) -> None:
        """Run at most *processes* programs at a time and keep *ready* children waiting; *check* every zygote."""
        self._ready = ready
        self._turns = AnswerTurns()
        self._children = ReadyChildren(start, check, processes, ready, queue_seconds)

    def spawn(self) -> None:
        """Start the zygote's process, so that it is warm when the first program comes."""
        self._children.spawn()

    async def open(self) -> JailReport:
        """Start the zygote and return its report on the jail; raise EngineCrashed if it cannot be started."""
        return await self._children.open()

    async def start(self, limits: Limits) -> None:
        """Let the first children wait, so that the first run finds one."""
        await self.open()
        await self._children.prepare(_room(limits))

    def refuse(self, program: Program, reach: Reach) -> None:
        """Refuse nothing: it is CPython."""

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome; raise RunError if it ended without one."""
        for _ in range(self._ready + 1):
            # Every child that waited may have died meanwhile.
            with contextlib.suppress(StillbornRun):
                return await self._run(ForkedRun(program, reach, limits, deadline, self._turns), limits)
        raise EngineCrashed(f"every process that was to run the program died before it did; {NOTHING_RAN}")

    async def _run(self, run: ForkedRun, limits: Limits) -> Outcome:
        try:
            async with self._children.child(_room(limits), run.deadline.at) as child:
                return await run.drive(child)
        except TimeoutError:
            raise Overloaded("all processes of the engine are busy, try again later") from None
        except RunError as error:
            error.printed = run.printed.text()
            raise

    async def open_session(self) -> ForkedSession:
        """Return a new session, whose process is forked for its first program."""
        return ForkedSession(self._children, self._turns)

    async def health(self) -> EngineHealth:
        """Return the number of runs, and the layers that hold them."""
        counted = {"running": self._children.running, "ready": self._children.waiting}
        return EngineHealth(self.name, "ok", {**self.details(), **counted})

    def details(self) -> dict[str, Any]:
        """Return further facts besides the runs."""
        return {"python": platform.python_version()}

    @property
    def locked(self) -> JailReport | None:
        """What the zygote found out about its jail, once it has."""
        return self._children.locked

    async def aclose(self) -> None:
        """End the zygote and every child."""
        await self._children.aclose()


def _room(limits: Limits) -> Room:
    return Room(limits.memory_mb << 20, limits.cpu_seconds)


# ---------------------------------------------------------------- sessions

RUNS_OF_COMPUTING = 200
"""The kernel's own clock of computing counts all runs of a child; the server's holds each run to its limit."""


class ForkedSession:
    """Keeps one child; whatever ends the child ends the session."""

    def __init__(self, children: ReadyChildren, turns: AnswerTurns) -> None:
        """Fork the child from *children* when the first program comes."""
        self._children = children
        self._turns = turns
        self._child: Child | None = None
        self._runs = 0
        self._why = ""

    @property
    def lost(self) -> str:
        """Why the variables are gone; empty while they are kept."""
        if not self._why and self._child is not None and not self._child.is_alive():
            self._why = "its process ended, or a thread of an earlier program kept running"
            self._child.kill()
        return self._why

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome; raise RunError if it ended without one."""
        self._runs += 1
        run = ForkedRun(program, reach, limits, deadline, self._turns, keep=self._runs)
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
