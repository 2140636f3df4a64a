"""A backend for tests: it answers from a table and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isawaitable
from typing import Any

from ot.execution.call_context import CallContext
from ot.registry.tool import Tool


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
