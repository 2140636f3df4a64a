"""The backend of saved programs: the door decides and records, and whoever called gets what its engine is to run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ot.errors import ToolUnavailable
from ot.execution.call_context import CallContext
from ot.registry.saved_programs import EnteredProgram, SavedProgram
from ot.registry.tool import Tool


class SavedProgramBackend:
    """Runs nothing: a saved program runs where its caller does."""

    def __init__(self, programs: Mapping[str, SavedProgram]) -> None:
        """Answer for *programs*, by name."""
        self._programs = programs

    async def prepare(self, tool: Tool, context: CallContext) -> None:
        """Need nothing."""

    async def call(self, tool: Tool, arguments: dict[str, Any], context: CallContext) -> EnteredProgram:
        """Return what the engine is to run."""
        program = self._programs.get(tool.pack)
        if program is None:
            raise ToolUnavailable(tool.pack, "it is not there any more")
        return EnteredProgram(program, tool.name, arguments)
