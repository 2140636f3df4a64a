"""An engine and a backend that answer what a test gives them, and remember what they were asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from ot.config.models import Limits
from ot.execution.call_context import CallContext
from ot.execution.deadline import Deadline
from ot.registry.tool import Tool
from ot.runtime.engines.engine import EngineHealth, Outcome, Reach
from ot.runtime.program import Program


class StubBackend:
    """Answers ``pack.name`` with what the table holds: a value, or a function of the arguments."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        """Answer from *answers*, by full tool name."""
        self._answers = dict(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Do nothing."""

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> Any:
        """Return the table's answer."""
        self.calls.append((tool.full_name, arguments))
        answer = self._answers[tool.full_name]
        value: Any = answer(**arguments) if callable(answer) else answer
        return await value if isawaitable(value) else value


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
        """Report a healthy engine."""
        return EngineHealth(self.name)

    async def aclose(self) -> None:
        """Do nothing."""
