"""ChatWords: an answer broken between its words, while it still arrives."""

from __future__ import annotations

import re

PARTS = re.compile(r"\n|[^\S\n]+|\S+")
FENCE = "```"


class ChatWords:
    """Breaks lines of prose where they are too wide; code between fences stays as it is, for it is copied."""

    def __init__(self, width: int) -> None:
        """Keep lines within *width* columns."""
        self._width = width
        self._held = ""
        """A word that may go on, or the space before one."""
        self._gap = ""
        self._column = 0
        self._in_code = False

    def take(self, text: str) -> str:
        """Return what can be shown after *text* has arrived."""
        parts = PARTS.findall(self._held + text)
        self._held = parts.pop() if parts and parts[-1] != "\n" else ""
        return "".join(map(self._place, parts))

    def rest(self) -> str:
        """Return what was held back."""
        return self._place(self._held)

    def _place(self, part: str) -> str:
        from rich.cells import cell_len

        if part == "\n":
            self._column, self._gap = 0, ""
            return part
        if not part.strip():
            self._gap = part
            return ""
        if self._column == 0 and part.startswith(FENCE):
            self._in_code = not self._in_code
        before, self._gap = self._gap, ""
        if self._column and not self._in_code and self._column + cell_len(before + part) > self._width:
            before, self._column = "\n", 0
        self._column += cell_len(before + part)
        if self._column > self._width:  # the terminal has broken it
            self._column %= self._width
        return before + part
