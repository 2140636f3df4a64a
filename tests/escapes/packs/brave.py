"""Searches that find nothing but the words given."""

from __future__ import annotations

import asyncio
from typing import Any

from escapes.packs._watch import WATCH

pack = "brave"
__all__ = ["asearch", "aslow", "search"]


def search(query: Any, count: int = 1) -> dict[str, Any]:
    """Return the query."""
    with WATCH.call("brave.search", query, count):
        return {"q": query, "count": count}


async def asearch(query: Any) -> dict[str, Any]:
    """Return the query a moment later."""
    with WATCH.call("brave.asearch", query):
        await asyncio.sleep(0.01)
        return {"q": query}


async def aslow(s: float) -> str:
    """Return after *s* seconds."""
    with WATCH.call("brave.aslow", s):
        await asyncio.sleep(s)
        return "slow"
