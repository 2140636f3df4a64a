"""The pack that the corpus calls."""

from __future__ import annotations

pack = "brave"

__all__ = ["search"]


def search(query: str, count: int = 1) -> list[dict[str, str]]:
    """Search the web.

    Args:
        query: What to look for.
        count: How many.
    """
    return [{"title": f"{query} {n}"} for n in range(count)]
