"""An engine for tests: it answers every program with what it was told to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ot.config.models import Limits
from ot.execution.deadline import Deadline
from ot.runtime.engines.engine import EngineHealth, Outcome, Reach
from ot.runtime.program import Program


class StubEngine:
    """Hands programs to a function instead of running them, and remembers them."""

    name = "stub"
    lost = ""

    def __init__(self, answer: Callable[[Program, Reach], Awaitable[Outcome]]) -> None:
        """Answer with *answer*."""
        self._answer = answer
        self.programs: list[Program] = []

    def refuse(self, program: Program, reach: Reach) -> None:
        """Refuse nothing."""

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the answer."""
        self.programs.append(program)
        return await self._answer(program, reach)

    async def open_session(self) -> StubEngine:
        """Return itself: as a session it keeps nothing."""
        return self

    async def health(self) -> EngineHealth:
        """Return that all is well."""
        return EngineHealth(self.name)

    async def aclose(self) -> None:
        """Do nothing."""
