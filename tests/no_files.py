"""A reach without files and with one pack, for tests of engines by themselves."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from ot.errors import ToolFailed
from ot.runtime.engines.engine import Constant, Function, Missing


class NoFiles:
    """Refuses every step of Python's own file functions; all names of its packs can be called."""

    packs: Container[str] = frozenset({"t"})
    given = None

    def has_pack(self, name: str) -> bool:
        return name in self.packs

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        return Function()

    def saved(self, name: str) -> None:
        return None

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        raise ToolFailed(f"file.{step}", "PermissionError", "there are no files here")

    def note_print(self, text: str) -> None:
        pass
