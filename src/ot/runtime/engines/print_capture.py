"""PrintCapture: what a program prints, kept up to a cap."""

from __future__ import annotations


class PrintCapture:
    """A print callback that keeps the first bytes and counts the rest."""

    def __init__(self, max_bytes: int) -> None:
        """Keep at most *max_bytes*."""
        self._left = max_bytes
        self._parts: list[str] = []
        self._dropped = 0

    def __call__(self, stream: str, text: str) -> None:
        """Take what was printed; standard error counts as print, too."""
        # Once something was dropped nothing more is kept: what is shown has no hole in it.
        kept = "" if self._dropped else _first_bytes(text, self._left)
        if kept:
            self._parts.append(kept)
            self._left -= len(kept.encode(errors="replace"))
        self._dropped += len(text) - len(kept)

    def drop(self, characters: int) -> None:
        """Count what was printed and not even sent."""
        self._dropped += characters

    def text(self) -> str:
        """Return what was kept, marked when something was dropped."""
        printed = "".join(self._parts)
        return printed + f"\n[print output truncated: {self._dropped:,} more characters]" if self._dropped else printed


def _first_bytes(text: str, most: int) -> str:
    encoded = text[:most].encode(errors="replace")
    return text[:most] if len(encoded) <= most else encoded[:most].decode(errors="ignore")
