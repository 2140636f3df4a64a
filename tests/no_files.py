"""A reach without files, for tests of engines by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ot.errors import ToolFailed


class NoFiles:
    """Refuses every step of Python's own file functions."""

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        raise ToolFailed(f"file.{step}", "PermissionError", "there are no files here")

    def note_print(self, text: str) -> None:
        pass
