"""The portable engine: programs run by Monty, a Python subset in worker processes, on every platform."""

from __future__ import annotations

import contextlib
from typing import Any

import pydantic_monty as monty

from ot.config.models import Limits
from ot.errors import EngineCrashed, NotSupported, Overloaded, RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import EngineHealth, Outcome, Reach, StillbornRun
from ot.runtime.engines.portable_gaps import find_gaps
from ot.runtime.engines.portable_run import PortableRun
from ot.runtime.engines.portable_session import PortableSession
from ot.runtime.engines.ready_sessions import AHEAD, ReadySessions
from ot.runtime.program import Program

SUSPENSIONS_PER_CALL = 3
"""A call may cost Monty a lookup, the call and the wait for it."""


class PortableEngine:
    """Runs each program in a fresh session of a pool that is kept for the server's life."""

    name = "portable"

    def __init__(self, *, processes: int = 64, queue_seconds: float = 10.0) -> None:
        """Use at most *processes* workers; a run waits *queue_seconds* for one."""
        self._sessions = ReadySessions(processes, queue_seconds)

    async def start(self, limits: Limits) -> None:
        """Start the pool and enter the first sessions, so that the first run finds one."""
        await self._sessions.prepare(_monty_limits(limits))

    def refuse(self, program: Program, reach: Reach) -> None:
        """Return when Monty answers *program* as CPython would.

        Raises:
            NotSupported: It lacks something, or is known to answer differently.
        """
        packs = [name for name in program.loads if reach.has_pack(name)]
        if gaps := find_gaps(program.tree, packs):
            raise NotSupported(gaps, self.name)

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline | None = None) -> Outcome:
        """Return the program's outcome.

        Raises:
            RunError: It ended without one.
        """
        deadline = deadline or Deadline.after(limits.run_seconds)
        for _ in range(AHEAD + 1):
            # Every worker that waited may have died meanwhile; then nothing of the program has taken effect.
            with contextlib.suppress(StillbornRun):
                return await self._run(PortableRun(program, reach, limits, deadline), limits)
        raise EngineCrashed("the engine's processes die as soon as they are given a program")

    async def _run(self, run: PortableRun, limits: Limits) -> Outcome:
        try:
            async with self._sessions.session(_monty_limits(limits), run.deadline.at) as session:
                return await run.drive(session)
        except TimeoutError:
            raise Overloaded("all processes of the engine are busy, try again later") from None
        except RunError as error:
            error.printed = run.printed.text()
            raise

    async def open_session(self) -> PortableSession:
        """Return a new session, which holds no process between its programs."""
        return PortableSession(self._sessions, _monty_limits)

    async def health(self) -> EngineHealth:
        """Return how many runs there are."""
        return EngineHealth(self.name, "ok", {"monty": monty.__version__, "running": self._sessions.running})

    async def aclose(self) -> None:
        """End all workers."""
        await self._sessions.aclose()


def _monty_limits(limits: Limits) -> dict[str, Any]:
    return {
        "max_feed_duration_secs": limits.cpu_seconds,
        "max_memory": limits.memory_mb << 20,
        "max_suspensions": limits.calls * SUSPENSIONS_PER_CALL + 100,
        "max_recursion_depth": 1000,
    }
