"""A tool whose parameters begin alike."""

from __future__ import annotations

from typing import Any

pack = "prefix"

__all__ = ["fn", "strict"]


def fn(query_info: Any = None, query: Any = None, quality: Any = None, **kw: Any) -> dict[str, Any]:
    """Return what was given, by the name it arrived under."""
    given = {"query_info": query_info, "query": query, "quality": quality, **kw}
    return {name: value for name, value in given.items() if value is not None}


def strict(query_info: Any = None, query: Any = None, quality: Any = None) -> dict[str, Any]:
    """Return what was given; other names are errors."""
    return fn(query_info, query, quality)
