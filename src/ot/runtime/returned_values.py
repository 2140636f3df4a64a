"""ReturnedValues: what tools gave a program, so that an error on it can name the keys and types that it has."""

from __future__ import annotations

import re
from typing import Any

from ot.registry.value_shape import Shape, shape_of, shape_text

MOST_TOOLS = 8
SHOWN = 2
MAX_KEPT_CHARS = 256 << 10
"""Of a larger value only the shape is kept."""
KINDS = frozenset({"KeyError", "AttributeError", "TypeError", "IndexError"})
CALLED = re.compile(r"\b(\w{1,200}\.\w{1,200})\s*\(")
OWN_WORDS = re.compile(r"^[\w.]{1,400}\(\)|is not in pack|Expected: |has no attribute '__|^module ")
"""How the door speaks, and modules: of them the values of tools say nothing."""


class ReturnedValues:
    """The last value of each of the tools that a run has called latest."""

    def __init__(self) -> None:
        """Begin with none."""
        self._latest: dict[str, Any] = {}

    def note(self, tool: str, value: Any, chars: int) -> None:
        """Take what *tool* returned."""
        self._latest.pop(tool, None)
        self._latest[tool] = value if chars <= MAX_KEPT_CHARS else shape_of(value)
        if len(self._latest) > MOST_TOOLS:
            del self._latest[next(iter(self._latest))]

    def hint(self, kind: str, message: str, line: str) -> str:
        """Return what the tools gave that the failing *line*, or the run, called last, if the error may be about it."""
        if kind not in KINDS or OWN_WORDS.search(message):
            return ""
        in_line = [tool for tool in CALLED.findall(line) if tool in self._latest]
        tools = in_line or [tool for tool in reversed(self._latest) if not tool.startswith("ot.")]
        return "\n".join(f"{tool}() returned {self._shape(tool)}" for tool in tools[:SHOWN])

    def _shape(self, tool: str) -> str:
        value = self._latest[tool]
        if isinstance(value, list) and not value:
            return "an empty list"
        shape = value if isinstance(value, Shape) else shape_of(value)
        return shape_text(shape) + (": read it by json.loads(...)" if shape.inside else "")
