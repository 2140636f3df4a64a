"""``ot.stats()``: what was called, how long it took, and what it saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ot.execution.tool_context import current_tool_context
from ot.stats.figures import PERIODS, Figures, summary

DISABLED = "Error: Statistics are disabled. Set 'stats: {enabled: true}' in onetool.yaml to collect them."


@dataclass(frozen=True)
class Statistics:
    """What the ``ot`` pack may see of the statistics; ``figures(period, tool)`` reads them."""

    enabled: bool
    round_trip_ms: int
    figures: Callable[[str, str], Figures]
    health: Callable[[], dict[str, Any]]


def show_stats(
    view: Statistics, period: str, tool: str, output: str, tool_names: Callable[[], Sequence[str]]
) -> dict[str, Any] | str:
    """Return the figures, after writing the report if one is wanted; what hinders it is said in a text."""
    if not view.enabled:
        return DISABLED
    if period not in PERIODS:
        valid = ", ".join(PERIODS)
        return f"Error: Invalid period '{period}'. Valid: {valid}. Example: ot.stats(period='day')"
    try:
        figures = view.figures(period, tool)
    except OSError as error:
        return f"Error: {error}"
    found = summary(figures, view.round_trip_ms, tool=tool)
    if not output:
        return found
    if why := _write(output, figures, view.round_trip_ms, tool, tool_names()):
        return f"Error: Cannot write to '{output}': {why}"
    return found | {"html_report": str(current_tool_context().cwd / Path(output).expanduser())}


def _write(output: str, figures: Figures, round_trip_ms: int, tool: str, tool_names: Sequence[str]) -> str:
    """Return why the report cannot be written, or nothing."""
    from ot.stats.html_report import html_report  # noqa: PLC0415 - the template engine is for reports alone

    report = html_report(figures, round_trip_ms, tool=tool, tool_names=tool_names)
    try:
        with current_tool_context().guard.open_for_writing(output) as file:
            file.write(report.encode())
    except (OSError, ValueError) as error:
        return str(error).removeprefix(f"{output!r}: ")
    return ""
