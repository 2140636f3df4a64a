"""The portable engine: programs run by Monty, a Python subset in worker processes, on every platform."""

from __future__ import annotations

import ast
import contextlib
from typing import Any

import pydantic_monty as monty

from ot.config.models import Limits
from ot.errors import EngineCrashed, LimitExceeded, NotSupported, Overloaded, ProgramFailed, RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import EngineHealth, Outcome, Reach, StillbornRun
from ot.runtime.engines.portable.gaps import find_gaps
from ot.runtime.engines.portable.portable_run import Memory, PortableRun, with_prelude
from ot.runtime.engines.portable.ready_sessions import AHEAD, ReadySessions
from ot.runtime.engines.portable.refusals import with_finished_values
from ot.runtime.engines.portable.saved_functions import find_saved_gaps
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
        """Check that Monty answers *program* as CPython would.

        Raises:
            NotSupported: It lacks something, or is known to answer differently.
        """
        packs = [name for name in program.loads if reach.has_pack(name)]
        program = with_finished_values(program, packs)
        nodes = ast.walk(with_prelude(program)) if program.prelude else program.nodes
        if gaps := [*find_gaps(nodes, packs), *find_saved_gaps(program, reach)]:
            raise NotSupported(gaps, self.name)

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline | None = None) -> Outcome:
        """Return the program's outcome; raise RunError if it ended without one."""
        deadline = deadline or Deadline.after(limits.run_seconds)
        for _ in range(AHEAD + 1):
            # Every worker that waited may have died meanwhile; then nothing of the program has taken effect.
            with contextlib.suppress(StillbornRun):
                return await self._run(PortableRun(program, reach, limits, deadline), limits)
        raise EngineCrashed("the engine's processes die as soon as they are given a program")

    async def _run(self, run: PortableRun, limits: Limits) -> Outcome:
        try:
            async with self._sessions.session(_monty_limits(limits), run.deadline.at, _policy(run.reach)) as session:
                return await run.drive(session)
        except TimeoutError:
            raise Overloaded("all processes of the engine are busy, try again later") from None
        except RunError as error:
            error.printed = run.printed.text()
            raise

    async def open_session(self) -> PortableSession:
        """Return a new session, which holds no process between its programs."""
        return PortableSession(self._sessions)

    async def health(self) -> EngineHealth:
        """Return how many runs there are."""
        counted = {"running": self._sessions.running, "ready": self._sessions.ready}
        return EngineHealth(self.name, "ok", {"monty": monty.__version__, **counted})

    async def aclose(self) -> None:
        """End all workers."""
        await self._sessions.aclose()


def _policy(reach: Reach) -> monty.OSPolicy | None:
    """Return the session's own clock and chance, for a program with a given time."""
    given = reach.given
    return {"datetime": "call_host", "random_start": {"seed": given.seed}} if given else None


def _monty_limits(limits: Limits) -> dict[str, Any]:
    return {
        "max_feed_duration_secs": limits.cpu_seconds,
        "max_memory": limits.memory_mb << 20,
        "max_suspensions": limits.calls * SUSPENSIONS_PER_CALL + limits.file_calls + 100,
        "max_recursion_depth": 1000,
    }


# ---------------------------------------------------------------- sessions


class PortableSession:
    """Holds no process between its programs; the dump never leaves the server."""

    def __init__(self, sessions: ReadySessions) -> None:
        """Take a fresh session of *sessions* for each program."""
        self._sessions = sessions
        self._memory = Memory()
        self._dump = b""
        self._why = ""

    @property
    def lost(self) -> str:
        """Why the variables are gone; empty while they are kept."""
        return self._why

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome; raise RunError if it ended without one."""
        run = PortableRun(program, reach, limits, deadline, self._memory)
        why = "its last run was cancelled"
        try:
            async with self._sessions.session(_monty_limits(limits), deadline.at) as session:
                outcome = await self._drive(run, session, limits)
                why = ""
                return outcome
        except TimeoutError:
            why = ""  # it has not run
            raise Overloaded("all processes of the engine are busy, try again later") from None
        except RunError as error:
            why = "" if isinstance(error, ProgramFailed) and error.kind != "MemoryError" else str(error)
            error.printed = run.printed.text()
            raise
        finally:
            self._why = self._why or why

    async def _drive(self, run: PortableRun, session: monty.AsyncMontySession, limits: Limits) -> Outcome:
        if self._dump:
            await session.load_session(self._dump)
        try:
            outcome = await run.drive(session)
        except ProgramFailed as error:
            if error.kind != "MemoryError":
                await self._keep(session, limits)
            raise
        await self._keep(session, limits)
        return outcome

    async def _keep(self, session: monty.AsyncMontySession, limits: Limits) -> None:
        try:
            dump = await session.dump()
        except monty.MontyError as error:
            raise LimitExceeded("memory_mb", f"the session's variables cannot be kept: {error}") from None
        if len(dump) > limits.memory_mb << 20:
            raise LimitExceeded("memory_mb", "the session's variables take more than limits.memory_mb allows")
        self._dump = dump

    async def aclose(self) -> None:
        """Forget the variables."""
        self._dump = b""
        self._why = self._why or "it was ended"
