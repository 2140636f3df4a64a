"""onetool stats: what was called, how long it took, and what it saved."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ot.cli.terminal import Screen, echo

if TYPE_CHECKING:
    from ot.stats.figures import Figures, ToolFigures

BARS = "▁▂▃▄▅▆▇█"
POINTS = 24
TOOLS_SHOWN = 30


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("stats", epilog="Example: onetool stats --period week --html stats.html --open")(stats)


def stats(
    period: Annotated[str, typer.Option("--period", help="day, week, month or all.")] = "month",
    tool: Annotated[str, typer.Option("--tool", help="Only this tool, or this pack.")] = "",
    html: Annotated[Path | None, typer.Option("--html", help="Write a report with charts to this file.")] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what was called, how long it took, and what it saved."""
    from ot.app import App
    from ot.config.paths import Paths
    from ot.stats.figures import PERIODS

    if period not in PERIODS:
        raise typer.BadParameter(f"'{period}' is not a period: {', '.join(PERIODS)}")
    app = App(Paths.find())
    place = app.recorder.place
    if not place.settings.enabled:
        echo("statistics are disabled: set 'stats: {enabled: true}' in onetool.yaml", err=True)
        raise typer.Exit(1)
    figures = _figures(place.file, period, tool)
    if html is not None or open_it:
        _write(html or place.file.with_name("report.html"), figures, place.settings.round_trip_ms, tool, app, open_it)
    if as_json:
        from ot.stats.summary import summary

        found = summary(figures, place.settings.round_trip_ms, tool=tool, most_tools=len(figures.tools))
        echo(json.dumps(found))
    elif html is None and not open_it:
        _show(figures, place.settings.round_trip_ms, tool)


def _figures(file: Path, period: str, tool: str) -> Figures:
    from ot.stats.query import read_figures

    try:
        return read_figures(file, period, time.time(), tool=tool)
    except OSError as error:
        echo(f"onetool: {error}", err=True)
        raise typer.Exit(1) from None


def _write(file: Path, figures: Figures, round_trip_ms: int, tool: str, app: Any, open_it: bool) -> None:
    from ot.stats.html_report import html_report

    try:
        file.write_text(html_report(figures, round_trip_ms, tool=tool, tool_names=app.tool_names()), encoding="utf-8")
    except OSError as error:
        echo(f"onetool: cannot write {file}: {error.strerror}", err=True)
        raise typer.Exit(1) from None
    echo(f"wrote {file}", err=True)
    if open_it:
        typer.launch(str(file.absolute()))


def _show(figures: Figures, round_trip_ms: int, tool: str) -> None:
    from ot.stats.summary import Savings, rate

    screen = Screen()
    calls, errors = sum(one.calls for one in figures.tools), sum(one.errors for one in figures.tools)
    runs = "" if tool else f"{figures.runs['runs']:,} runs, "
    screen.print((f"{runs}{calls:,} calls", "bold"), f", {rate(calls, errors)} % succeeded ({figures.window.period})")
    if not tool:
        savings = Savings.of(figures, round_trip_ms)
        tokens = f"kept out of the context: about {savings.tokens:,} tokens "
        screen.print(tokens, (f"({savings.context_formula})", "dim"))
        screen.print(f"time saved: {savings.time_ms / 1000:,.0f} s ", (f"({savings.time_formula})", "dim"))
    if figures.tools:
        _show_table(screen, figures)
    if len(figures.tools) > TOOLS_SHOWN:
        screen.print((f"and {len(figures.tools) - TOOLS_SHOWN:,} tools more: --json shows all", "dim"))


def _show_table(screen: Screen, figures: Figures) -> None:
    from rich.table import Column

    numbers = [Column(name, justify="right") for name in ("calls", "ok %", "p50 ms", "p95 ms", "chars")]
    columns = [Column("tool", overflow="fold"), *numbers, Column("when", no_wrap=True)]
    screen.table(columns, [_row(figures, one) for one in figures.tools[:TOOLS_SHOWN]])


def _row(figures: Figures, one: ToolFigures) -> list[str | tuple[str, str]]:
    from ot.stats.summary import rate

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
