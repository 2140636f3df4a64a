"""Calls that a model's stream has brought in pieces: made only when they are whole, each under an id of its own."""

from __future__ import annotations

import json
from typing import Any, cast

from ot.chat.chat_client import ToolCall

TWICE = "the call was not made: its id stands for another call of this conversation; make it again"
UNREADABLE = "the call was not made: its arguments are not a whole JSON object; make it again"
CUT = "the call was not made: the reply was cut off at chat.max_tokens; make it again with less"


def whole_call(id: object, name: object, written: str, used: set[str], *, cut: bool) -> ToolCall:
    """Return the call whose arguments are *written*, which adds its id to those *used*; a *cut* one is not made."""
    own = id if isinstance(id, str) and id and id not in used else f"toolu_again_{len(used)}"
    used.add(own)
    arguments = _object(written)
    problem = CUT if cut else TWICE if own != id else UNREADABLE if arguments is None else ""
    return ToolCall(own, str(name or "unnamed")[:128], arguments, problem)


def _object(written: str) -> dict[str, Any] | None:
    try:
        found: Any = json.loads(written) if written.strip() else {}
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
