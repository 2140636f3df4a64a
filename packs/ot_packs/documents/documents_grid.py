"""Writes rows as a table of Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def pipe_table(rows: Iterable[list[Any]]) -> str:
    """Return *rows* as a table; the first is its head."""
    lines = [[_cell(value) for value in row] for row in rows]
    width = max(map(len, lines), default=0)
    if not width:
        return ""
    whole = [line + [""] * (width - len(line)) for line in lines]
    whole.insert(1, ["---"] * width)
    return "\n".join(f"| {' | '.join(line)} |" for line in whole)


def _cell(value: Any) -> str:
    return "" if value is None else " ".join(str(value).replace("|", "\\|").split())
