"""Logging on standard error: standard output belongs to the protocol."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable


class RedactingFormatter(logging.Formatter):
    """Formats records as lines of text without secrets."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        """Pass every line through *redact*."""
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        return self._redact(super().format(record))


def configure_logs(level: str, redact: Callable[[str], str] = lambda text: text) -> None:
    """Send the log of ``ot`` and of packs to standard error, at *level* and above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(RedactingFormatter(redact))
    for name in ("ot", "ot_tools"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
