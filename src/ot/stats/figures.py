"""Figures: what the statistics say about a period, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ot.stats.schema import DAY, HOUR

PERIODS = {"day": (HOUR, 24), "week": (HOUR, 7 * 24), "month": (DAY, 30), "all": (DAY, 0)}
"""Each period's sums, and how many of them up to now; 0 is all."""
CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class Window:
    """The sums that an answer is made of: those of one length, from one moment on."""

    period: str
    span: int
    start: int
    end: float

    @classmethod
    def of(cls, period: str, now: float) -> Window:
        """Return the window of *period* up to *now*; it begins at a full hour, or a full day in UTC."""
        span, count = PERIODS[period]
        return cls(period, span, int(now) // span * span - (count - 1) * span if count else 0, now)


@dataclass(frozen=True)
class ToolFigures:
    """What is known of one tool; the two times are estimates from a histogram."""

    tool: str
    pack: str
    source: str
    calls: int
    errors: int
    chars: int
    ms: float
    slowest_ms: float
    last: float
    p50_ms: float
    p95_ms: float
    series: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Figures:
    """All that the statistics say about a window."""

    window: Window
    first: float
    runs: dict[str, Any]
    clients: list[dict[str, Any]]
    tools: list[ToolFigures]
    errors: list[dict[str, Any]]
    pack_series: list[tuple[int, str, int]]
    run_series: list[dict[str, Any]]
    run_calls: dict[int, int]
    p50_ms: float
    p95_ms: float
    lost: int


def moment(ts: float) -> str:
    """Return *ts* in ISO 8601, in UTC."""
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
