"""PrintCapture: what a program prints, cut off at its limit."""

from __future__ import annotations

from collections.abc import Callable


class PrintCapture:
    """A print callback that keeps the first bytes and counts the rest."""

    def __init__(self, max_bytes: int, note: Callable[[str], None] = lambda text: None) -> None:
        """Keep at most *max_bytes*; *note* is told at once of what is kept."""
        self._left = max_bytes
        self._note = note
        self._parts: list[str] = []
        self._dropped = 0

    def __call__(self, stream: str, text: str) -> None:
        """Take what was printed; standard error counts as print, too."""
        # Once something was dropped nothing more is kept, so the shown text has no gap.
        kept = "" if self._dropped else _first_bytes(text, self._left)
        if kept:
            self._parts.append(kept)
            self._left -= len(kept.encode(errors="replace"))
            self._note(kept)
        self._dropped += len(text) - len(kept)

    def drop(self, characters: int) -> None:
        """Count what was printed and not even sent."""
        self._dropped += characters

    def text(self) -> str:
        """Return the kept text, marked if something was dropped."""
        printed = "".join(self._parts)
        return printed + f"\n[print output truncated: {self._dropped:,} more characters]" if self._dropped else printed


def _first_bytes(text: str, most: int) -> str:
    encoded = text[:most].encode(errors="replace")
    return text[:most] if len(encoded) <= most else encoded[:most].decode(errors="ignore")
