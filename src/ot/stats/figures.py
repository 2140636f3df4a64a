"""Figures: what the statistics say about a period, as plain data, and beside each estimate how it was made."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ot.stats.schema import DAY, HOUR

PERIODS = {"day": (HOUR, 24), "week": (HOUR, 7 * 24), "month": (DAY, 30), "all": (DAY, 0)}
"""Each period's sums, and how many of them up to now; 0 is all."""
CHARS_PER_TOKEN = 4
ROUND_TRIP_MS = 2000
"""What a call would have taken as a round trip through the model."""


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
    tolerated: dict[str, int]


def moment(ts: float) -> str:
    """Return *ts* in ISO 8601, in UTC."""
    return datetime.fromtimestamp(ts, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Savings:
    """What really stayed out of the model's context, in characters, and the time that composed calls spared."""

    definitions: int
    results: int
    composed: int

    @classmethod
    def of(cls, figures: Figures) -> Savings:
        """Return the savings of the runs in *figures*."""
        runs = figures.runs
        return cls(runs["flat_chars"] - runs["our_chars"], runs["kept_out"], runs["composed"])

    @property
    def chars(self) -> int:
        """Characters that stayed out of the context."""
        return self.definitions + self.results

    @property
    def tokens(self) -> int:
        """About as many tokens."""
        return self.chars // CHARS_PER_TOKEN

    @property
    def time_ms(self) -> int:
        """Milliseconds of round trips that were not made."""
        return self.composed * ROUND_TRIP_MS

    @property
    def context_formula(self) -> str:
        """How the tokens were estimated."""
        parts = f"{self.definitions:,} characters of definitions not sent + {self.results:,} of results not returned"
        return f"estimate: ({parts}) / {CHARS_PER_TOKEN}"

    @property
    def time_formula(self) -> str:
        """How the time was estimated."""
        return f"estimate: {self.composed:,} calls beyond the first of their run x {ROUND_TRIP_MS:,} ms"


def summary(figures: Figures, *, tool: str = "", most_tools: int = 50) -> dict[str, Any]:
    """Return the figures as plain data for a program; savings belong to runs and are left out for one *tool*."""
    calls, errors = sum(one.calls for one in figures.tools), sum(one.errors for one in figures.tools)
    found: dict[str, Any] = {
        "period": figures.window.period,
        "start_time": moment(max(figures.window.start, figures.first)),
        "end_time": moment(figures.window.end),
        "total_calls": calls,
        "success_count": calls - errors,
        "error_count": errors,
        "success_rate": rate(calls, errors),
        "total_duration_ms": round(sum(one.ms for one in figures.tools)),
    }
    found |= _of_runs(figures) if not tool else {"tool": tool}
    found["tools"] = [_tool(one) for one in figures.tools[:most_tools]]
    more = len(figures.tools) - most_tools
    found |= {"more_tools": more} if more > 0 else {}
    return found | ({"rows_lost": figures.lost} if figures.lost else {})


def rate(calls: int, errors: int) -> float:
    """Return the percentage of successful calls; 100 if there were none."""
    return round(100 * (calls - errors) / calls, 1) if calls else 100.0


def _of_runs(figures: Figures) -> dict[str, Any]:
    savings, runs = Savings.of(figures), figures.runs
    return {
        "runs": runs["runs"],
        "failed_runs": runs["errors"],
        "context_saved": savings.tokens,
        "context_saved_is": savings.context_formula,
        "time_saved_ms": savings.time_ms,
        "time_saved_is": savings.time_formula,
    } | ({"tolerated": figures.tolerated} if figures.tolerated else {})


def _tool(one: ToolFigures) -> dict[str, Any]:
    return {
        "tool": one.tool,
        "calls": one.calls,
        "success_rate": rate(one.calls, one.errors),
        "p50_ms": one.p50_ms,
        "p95_ms": one.p95_ms,
        "chars_returned": one.chars,
    }
