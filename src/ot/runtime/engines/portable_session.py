"""PortableSession: variables that are kept as a dump, and loaded into a fresh Monty session for each program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydantic_monty as monty

from ot.config.models import Limits
from ot.errors import LimitExceeded, Overloaded, ProgramFailed, RunError
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import Outcome, Reach
from ot.runtime.engines.portable_run import Memory, PortableRun
from ot.runtime.engines.ready_sessions import ReadySessions
from ot.runtime.program import Program


class PortableSession:
    """Holds no process between its programs; the dump never leaves the server."""

    def __init__(self, sessions: ReadySessions, monty_limits: Callable[[Limits], dict[str, Any]]) -> None:
        """Take a fresh session of *sessions* for each program."""
        self._sessions = sessions
        self._monty_limits = monty_limits
        self._memory = Memory()
        self._dump = b""
        self._why = ""

    @property
    def lost(self) -> str:
        """Why the variables are gone; empty while they are kept."""
        return self._why

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the program's outcome.

        Raises:
            RunError: It ended without one.
        """
        run = PortableRun(program, reach, limits, deadline, self._memory)
        why = "its last run was cancelled"
        try:
            async with self._sessions.session(self._monty_limits(limits), deadline.at) as session:
                outcome = await self._driven(run, session, limits)
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

    async def _driven(self, run: PortableRun, session: monty.AsyncMontySession, limits: Limits) -> Outcome:
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
