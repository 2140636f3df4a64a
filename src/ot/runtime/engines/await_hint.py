"""What to tell a program that awaits the value of a plain call."""

from __future__ import annotations

HINT = "await the call itself: await asyncio.gather(*[pack.f(x=i) for i in items]); plain calls need no await"


def await_hint(kind: str, message: str, line: str) -> str:
    """Return the hint when an error with this *message*, at this *line* of a program, looks like that mistake."""
    named = any(word in message for word in ("await", "gather", "coroutine"))
    # Given a list or dict, gather stumbles before it can say what it wants.
    stumbled = message.startswith("unhashable type") and "gather(" in line
    return HINT if kind == "TypeError" and (named or stumbled) else ""
