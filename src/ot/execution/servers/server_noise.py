"""ServerNoise: what a server wrote that is no message, on its standard output and on standard error."""

from __future__ import annotations

import logging
from collections import deque

logger = logging.getLogger(__name__)

KEPT_LINES = 5
SHOWN_CHARACTERS = 200
WARNED_LINES = 3
"""Later ones are logged at debug only: a server that prints on every call would fill the log."""


class ServerNoise:
    """The last few lines that were skipped, cut and escaped, and how many there were."""

    def __init__(self, server: str) -> None:
        """Keep those of *server*."""
        self._server = server
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._said: deque[str] = deque(maxlen=KEPT_LINES)
        self.count = 0

    def add(self, line: bytes, why: str = "") -> None:
        """Take note of a line that was skipped."""
        self.count += 1
        # repr() escapes what a terminal or a reader could be misled by.
        shown = repr(line[:SHOWN_CHARACTERS].decode(errors="backslashreplace")) + (f" ({why})" if why else "")
        self._last.append(shown)
        level = logging.WARNING if self.count <= WARNED_LINES else logging.DEBUG
        logger.log(level, "the server %s wrote a line that is no JSON-RPC: %s", self._server, shown)

    def say(self, line: str) -> None:
        """Keep a line of standard error, where it may say what it likes."""
        if line.strip():
            self._said.append(line.strip()[:SHOWN_CHARACTERS])

    @property
    def said(self) -> str:
        """The last few lines of standard error."""
        return "\n".join(self._said)

    @property
    def text(self) -> str:
        """What to say about it in an error or in health; nothing when there was none."""
        if not self.count:
            return ""
        lines = "1 line" if self.count == 1 else f"{self.count:,} lines"
        return f"it wrote {lines} on standard output that are no JSON-RPC, such as {self._last[-1]}"
