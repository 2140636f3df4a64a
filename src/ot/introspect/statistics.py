"""``ot.stats()``: what was called, how long it took, and what it saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ot.errors import ToolDenied, ToolError, ToolFailed
from ot.execution.tool_context import current_tool_context, wait_in_thread
from ot.stats.figures import PERIODS, Figures, summary

DISABLED = "Error: Statistics are disabled. Set 'stats: {enabled: true}' in onetool.yaml to collect them."


@dataclass(frozen=True)
class Statistics:
    """What the ``ot`` pack may see of the statistics; ``figures(period, tool)`` reads them."""

    enabled: bool
    figures: Callable[[str, str], Figures]
    health: Callable[[], dict[str, Any]]


def show_stats(
    view: Statistics, period: str, tool: str, output: str, tool_names: Callable[[], Sequence[str]]
) -> dict[str, Any] | str:
    """Return the figures, after writing the report if one is wanted; what hinders it is said in a text.

    Raises:
        PermissionError: ``file.write`` may not be called.
    """
    if not view.enabled:
        return DISABLED
    if period not in PERIODS:
        valid = ", ".join(PERIODS)
        return f"Error: Invalid period '{period}'. Valid: {valid}. Example: ot.stats(period='day')"
    try:
        figures = view.figures(period, tool)
    except OSError as error:
        return f"Error: {error}"
    found = summary(figures, tool=tool)
    if not output:
        return found
    if why := _write(output, figures, tool, tool_names()):
        return f"Error: Cannot write to '{output}': {why}"
    return found | {"html_report": str(current_tool_context().cwd / Path(output).expanduser())}


def _write(output: str, figures: Figures, tool: str, tool_names: Sequence[str]) -> str:
    """Return why the report cannot be written, or nothing."""
    from ot.stats.html_report import html_report  # noqa: PLC0415 - the template engine is for reports alone

    report = html_report(figures, tool=tool, tool_names=tool_names)
    call = current_tool_context().call
    if call is None:
        return "there is no run here that could write it"
    try:
        # Through the door: it is allowed, asked for and recorded as any other write.
        wait_in_thread(call, "file", "write", (), {"path": output, "content": report})
    except ToolDenied as error:
        raise PermissionError(str(error)) from None
    except ToolError as error:
        said = error.message if isinstance(error, ToolFailed) else str(error)
        return said.removeprefix(f"{output!r}: ")
    return ""
