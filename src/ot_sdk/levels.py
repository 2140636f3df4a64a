"""How much a log's line matters."""

from __future__ import annotations

from typing import Literal

Level = Literal["debug", "info", "warning", "error"]
LEVELS = ("debug", "info", "warning", "error")


def check_level(level: str) -> None:
    """Refuse a word that is no level.

    Raises:
        ValueError: It is none.
    """
    if level not in LEVELS:
        raise ValueError(f"there is no level {level!r}; there are {', '.join(LEVELS)}")
