"""The pack that the benchmarks call."""

from __future__ import annotations

pack = "demo"

__all__ = ["echo"]
__ot_pure__ = ["echo"]


def echo(text: str) -> str:
    """Return the text."""
    return text
