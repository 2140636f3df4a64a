"""LedgerEntry: one call in the ledger, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

from ot.execution.ledger import call_key
from ot_sdk import tagged
from ot_sdk.errors import NotPlain

type EntryState = Literal["sent", "done", "failed", "unknown"]
"""``sent``: it is under way, or whoever sent it died; the ledger tells which."""

MOST_VALUE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One call that may have had an effect."""

    run: str
    call: int
    tool: str
    line: int | None
    state: EntryState
    at: float
    """When it was sent, in seconds since 1970."""
    ended: float | None = None
    start: int = 0
    """Of a background run, which of its starts made the call."""
    value: Any = None
    """Of a background run, what the call returned, if it is small enough to be kept."""
    given_key: str = ""
    """What whoever asked for the call from another host knows it by."""
    directory: str = ""
    """Where the program worked that made it."""

    @property
    def key(self) -> str:
        """What the tool was given as the call's idempotency key."""
        return self.given_key or call_key(self.run, self.start, self.call)

    def as_row(self) -> dict[str, Any]:
        """Return it as plain data for programs and people."""
        sent = datetime.fromtimestamp(self.at, UTC).isoformat(timespec="milliseconds")
        row = {"run": self.run, "call": self.call, "tool": self.tool, "line": self.line}
        return row | {"state": self.state, "sent": sent, "key": self.key}


def encode_value(value: Any) -> str | None:
    """Return the ledger's form of a call's value: all of it, or nothing."""
    if value is None:
        return None
    try:
        text = orjson.dumps(tagged.encode(value)).decode()
    except (NotPlain, TypeError, ValueError):
        return None
    return text if len(text) <= MOST_VALUE_BYTES else None


def read_value(text: str | None) -> Any:
    """Return the value that the ledger kept."""
    return tagged.decode(orjson.loads(text)) if text else None
