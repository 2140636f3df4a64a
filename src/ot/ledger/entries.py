"""Entry: one call in the ledger, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

type EntryState = Literal["sent", "done", "failed", "unknown"]
"""``sent``: it is under way, or whoever sent it died; the ledger tells which."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One call that may have had an effect."""

    run: str
    call: int
    tool: str
    line: int | None
    state: EntryState
    at: float
    """When it was sent, in seconds since 1970."""
    ended: float | None = None

    def as_row(self) -> dict[str, Any]:
        """Return it as plain data for programs and people."""
        sent = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        return {
            "run": self.run,
            "call": self.call,
            "tool": self.tool,
            "line": self.line,
            "state": self.state,
            "sent": sent,
        }
