"""onetool stats: what was called, how long it took, and what it saved."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.exit_codes import FAILURE
from ot.cli.terminal import Screen, echo, echo_json, fail
from ot.cli.terminal.completion import complete_tools
from ot.cli.terminal.options import AsJson

if TYPE_CHECKING:
    from ot.stats.figures import Figures, ToolFigures
    from ot.stats.recorder import StatsPlace

BARS = "▁▂▃▄▅▆▇█"
POINTS = 24
TOOLS_SHOWN = 30


def stats(
    period: Annotated[str, typer.Option("--period", help="day, week, month or all.")] = "month",
    tool: Annotated[
        str, typer.Option("--tool", help="Only this tool, or this pack.", autocompletion=complete_tools)
    ] = "",
    html: Annotated[Path | None, typer.Option("--html", help="Write a report with charts to this file.")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was called, how long it took, and what it saved."""
    from ot.config.paths import Paths
    from ot.stats.figures import PERIODS, summary
    from ot.stats.query import read_figures
    from ot.workspace import Workspace

    if period not in PERIODS:
        raise typer.BadParameter(f"'{period}' is not a period: {', '.join(PERIODS)}")
    app = Workspace.alone(Paths.find())
    place = app.recorder.place
    if not place.settings.enabled:
        echo("statistics are disabled: set 'stats: {enabled: true}' in onetool.yaml", err=True)
        raise typer.Exit(FAILURE)
    try:
        figures = read_figures(place.file, period, time.time(), tool=tool)
    except OSError as error:
        fail(str(error))
    if html is not None or open_it:
        _write(html, place, figures, tool, app, open_it)
    if as_json:
        echo_json(summary(figures, tool=tool, most_tools=len(figures.tools)))
    elif html is None and not open_it:
        _show(figures, tool)


def _write(html: Path | None, place: StatsPlace, figures: Figures, tool: str, app: Any, open_it: bool) -> None:
    from ot.cli.terminal.saved_media import require_no_detour
    from ot.files.private_file import write_private
    from ot.stats.html_report import html_report

    file = html or place.file.with_name("report.html")
    text = html_report(figures, tool=tool, tool_names=app.tool_names())
    try:
        if html:
            require_no_detour(html)
            html.write_text(text, encoding="utf-8")
        else:
            write_private(file, text)
    except OSError as error:
        fail(f"cannot write {file}: {error.strerror}")
    echo(f"wrote {file}", err=True)
    if open_it:
        typer.launch(str(file.absolute()))


def _show(figures: Figures, tool: str) -> None:
    from ot.stats.figures import Savings, rate

    screen = Screen()
    calls, errors = sum(one.calls for one in figures.tools), sum(one.errors for one in figures.tools)
    runs = "" if tool else f"{figures.runs['runs']:,} runs, "
    screen.print((f"{runs}{calls:,} calls", "bold"), f", {rate(calls, errors)} % succeeded ({figures.window.period})")
    if not tool:
        savings = Savings.of(figures)
        tokens = f"kept out of the context: about {savings.tokens:,} tokens "
        screen.print(tokens, (f"({savings.context_formula})", "dim"))
        screen.print(f"time saved: {savings.time_ms / 1000:,.0f} s ", (f"({savings.time_formula})", "dim"))
    if figures.tools:
        from rich.table import Column

        numbers = [Column(name, justify="right") for name in ("calls", "ok %", "p50 ms", "p95 ms", "chars")]
        columns = [Column("tool", overflow="fold"), *numbers, Column("when", no_wrap=True)]
        screen.table(columns, [_row(figures, one) for one in figures.tools[:TOOLS_SHOWN]])
    if len(figures.tools) > TOOLS_SHOWN:
        screen.print((f"and {len(figures.tools) - TOOLS_SHOWN:,} tools more: --json shows all", "dim"))


def _row(figures: Figures, one: ToolFigures) -> list[str | tuple[str, str]]:
    from ot.stats.figures import rate

    good = rate(one.calls, one.errors)
    shown = (f"{good}", "red" if good < 95 else "")
    times = [f"{one.p50_ms:,.1f}", f"{one.p95_ms:,.1f}"]
    return [one.tool, f"{one.calls:,}", shown, *times, f"{one.chars:,}", (_sparkline(figures, one), "cyan")]


def _sparkline(figures: Figures, one: ToolFigures) -> str:
    """Return the tool's calls over the period as a row of small bars."""
    window = figures.window
    start = max(window.start, int(figures.first))
    width = max(window.span, (window.end - start) / POINTS)
    bins = [0] * min(POINTS, int((window.end - start) / width) + 1)
    for moment, calls in one.series:
        bins[min(len(bins) - 1, max(0, int((moment - start) / width)))] += calls
    most = max(bins) or 1
    return "".join(BARS[-(-calls * (len(BARS) - 1) // most)] if calls else " " for calls in bins)
