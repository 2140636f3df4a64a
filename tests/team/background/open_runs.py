"""A book whose runs nobody carries out, for tests of how workers hear of runs."""

from __future__ import annotations

from typing import Any


class OpenRuns:
    """Knows of runs that wait, and nothing else of them."""

    def __init__(self) -> None:
        self.waiting: list[str] = []

    async def left_behind(self) -> list[str]:
        """Return those that wait."""
        found, self.waiting = self.waiting, []
        return found

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a worker asks the book for nothing but what waits: {name}")
