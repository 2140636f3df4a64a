"""The report: one HTML file with charts that opens anywhere and loads nothing."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from ot.stats.figures import ROUND_TRIP_MS, Figures, Savings, moment, rate, summary
from ot.stats.schema import DAY
from ot.version import installed_version

HERE = Path(__file__).parent
PACKS_SHOWN, BARS_SHOWN, ERRORS_SHOWN, TOOLS_SHOWN, UNUSED_SHOWN = 8, 12, 5, 200, 150
TOOLS_TAKEN = 1500
"""Tools in the downloads: the file stays below a megabyte whatever is counted."""
BINS = ((0, 0), (1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, 50), (51, None))


def html_report(figures: Figures, *, tool: str = "", tool_names: Sequence[str] = ()) -> str:
    """Return the report as the text of one file; *tool_names* are all tools that there are, to name the unused."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(_text("report.html.jinja"))
    css, script = _text("report.css"), _text("report.js")
    # The comment would send a browser's tools looking for a file.
    vendor = _text("vendor/chart.js").partition("//# sourceMappingURL")[0]
    return template.render(
        css=css, script=script, vendor=vendor, csp=_csp(css, vendor, script), data=_json(_charts(figures)),
        **_content(figures, tool), **_list_unused(figures, tool, tool_names),
        csv_url=_url("text/csv", _csv(figures)),
        json_url=_url("application/json", _download(figures, tool)),
    )  # fmt: skip


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _csp(css: str, *scripts: str) -> str:
    """Return the policy that lets these very texts in and nothing else."""
    allowed = " ".join(map(_hash, scripts))
    return f"default-src 'none'; script-src {allowed}; style-src {_hash(css)}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """Return JSON that may stand in a script element: whatever a tool is called, it cannot end it."""
    text = json.dumps(value, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _url(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"


# ---------------------------------------------------------------- what the page says


def _content(figures: Figures, tool: str) -> dict[str, Any]:
    savings = Savings.of(figures)
    calls, errors = sum(one.calls for one in figures.tools), sum(one.errors for one in figures.tools)
    return {
        "tool": tool,
        "span_words": _span_words(figures),
        "step_words": "a day" if figures.window.span == DAY else "an hour",
        "runs": figures.runs,
        "calls": calls,
        "errors_count": errors,
        "success": rate(calls, errors),
        "p50": _duration(figures.p50_ms),
        "p95": _duration(figures.p95_ms),
        "savings": savings,
        "time_saved": _duration(savings.time_ms),
        "round_trip_ms": ROUND_TRIP_MS,
        "clients": figures.clients,
        "tools": [
            {**asdict(one), "success": rate(one.calls, one.errors), "last_words": _day(one.last)}
            for one in figures.tools[:TOOLS_SHOWN]
        ],
        "more_tools": max(0, len(figures.tools) - TOOLS_SHOWN),
        "errors": [{**one, "last_words": _day(one["last"])} for one in figures.errors],
        "lost": figures.lost,
        "version": installed_version(),
        "made": _day(figures.window.end),
    }


def _list_unused(figures: Figures, tool: str, tool_names: Sequence[str]) -> dict[str, Any]:
    """Return the names that were not called: a pack as a whole where none of its tools was."""
    called = {one.tool for one in figures.tools}
    packs: defaultdict[str, list[str]] = defaultdict(list)
    for name in tool_names:
        if not tool and not name.startswith(("ot.", "proj.")):
            packs[name.partition(".")[0]].append(name)
    names: list[str] = []
    for pack, tools in packs.items():
        idle = [name for name in tools if name not in called]
        names += [f"{pack}.* ({len(idle)})"] if len(idle) == len(tools) else idle
    more = f" The first {UNUSED_SHOWN} of {len(names):,}." if len(names) > UNUSED_SHOWN else ""
    return {"unused": names[:UNUSED_SHOWN], "unused_words": f"Tools, and whole packs as pack.* (tools).{more}"}


def _span_words(figures: Figures) -> str:
    start, end = max(figures.window.start, figures.first), figures.window.end
    words = {"day": "Last 24 hours", "week": "Last 7 days", "month": "Last 30 days", "all": "All time"}
    return f"{words[figures.window.period]} · {_date(start)} to {_date(end)}"


def _duration(ms: float) -> str:
    for size, name in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if ms >= size:
            return f"{ms / size:.1f} {name}"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def _date(ts: float) -> str:
    day = datetime.fromtimestamp(ts, UTC)
    return f"{day.day} {day:%b %Y}"


def _day(ts: float) -> str:
    return f"{datetime.fromtimestamp(ts, UTC):%Y-%m-%d %H:%M}"


# ---------------------------------------------------------------- what the charts draw


def _charts(figures: Figures) -> dict[str, Any]:
    starts = _starts(figures)
    slow = sorted((one for one in figures.tools if one.p95_ms), key=lambda one: one.p95_ms, reverse=True)
    return {
        "labels": [_label(start, figures.window.span) for start in starts],
        "packs": _stack(figures.pack_series, starts, PACKS_SHOWN, "calls"),
        "kept": _build_series(figures, starts),
        "per_run": _per_run(figures),
        "latency": [(one.tool, one.p50_ms, one.p95_ms) for one in slow[:BARS_SHOWN]],
        "errors": _error_bars(figures),
        "clients": [(one["client"] or "unknown", one["runs"]) for one in figures.clients[:9]],
    }


def _label(start: int, span: int) -> str:
    day = datetime.fromtimestamp(start, UTC)
    return f"{day.day} {day:%b}" if span == DAY else f"{day.day} {day:%b %H:00}"


def _starts(figures: Figures) -> range:
    window = figures.window
    first = window.start or min((start for start, _, _ in figures.pack_series), default=int(figures.first))
    first = max(first, int(figures.first)) if window.span == DAY else first
    return range(first // window.span * window.span, int(window.end) + 1, window.span)


def _stack[P](rows: Sequence[tuple[P, str, int]], places: Sequence[P], most: int, key: str) -> list[dict[str, Any]]:
    """Return the numbers of the largest names at each of *places*, and those of all others together, under *key*."""
    totals = Counter[str]()
    for _, name, number in rows:
        totals[name] += number
    shown = [name for name, _ in totals.most_common(most)]
    numbers: dict[str, list[int]] = {name: [0] * len(places) for name in [*shown, ""]}
    for place, name, number in rows:
        if place in places:
            numbers[name if name in shown else ""][places.index(place)] += number
    found: list[dict[str, Any]] = [{"name": name, key: numbers[name]} for name in shown]
    return [*found, {"name": "others", key: numbers[""], "rest": True}] if len(totals) > len(shown) else found


def _build_series(figures: Figures, starts: range) -> dict[str, list[int]]:
    by_start = {row["start"]: row for row in figures.run_series}
    nothing = {"kept_out": 0, "definitions": 0}
    rows = [by_start.get(start, nothing) for start in starts]
    return {"results": [row["kept_out"] for row in rows], "definitions": [row["definitions"] for row in rows]}


def _error_bars(figures: Figures) -> dict[str, Any]:
    """Return the tools with most errors, and for each type of error how many they had."""
    rows: list[tuple[str, str, int]] = [(one["tool"], one["error_type"], one["count"]) for one in figures.errors]
    by_tool = Counter[str]()
    for tool, _, count in rows:
        by_tool[tool] += count
    tools = [tool for tool, _ in by_tool.most_common(BARS_SHOWN)]
    types = _stack(rows, tools, ERRORS_SHOWN, "counts")
    return {"tools": [tool or "(whole runs)" for tool in tools], "types": types}


def _per_run(figures: Figures) -> list[tuple[str, int]]:
    def bin_of(least: int, most: int | None) -> tuple[str, int]:
        name = f"{least}+" if most is None else str(least) if least == most else f"{least} to {most}"
        counts = figures.run_calls.items()
        return name, sum(count for calls, count in counts if calls >= least and (most is None or calls <= most))

    return [bin_of(least, most) for least, most in BINS]


# ---------------------------------------------------------------- what can be taken along


def _csv(figures: Figures) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    columns = ("tool", "pack", "source", "calls", "errors", "p50_ms", "p95_ms", "slowest_ms", "ms", "chars", "last")
    writer.writerow(columns)
    for one in figures.tools[:TOOLS_TAKEN]:
        values = {**asdict(one), "last": moment(one.last)}
        writer.writerow([_no_formula(values[column]) for column in columns])
    return text.getvalue()


def _no_formula(value: object) -> object:
    # A spreadsheet takes a text that begins so for a formula and carries it out.
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def _download(figures: Figures, tool: str) -> str:
    found = summary(figures, tool=tool, most_tools=TOOLS_TAKEN)
    return json.dumps(found | {"clients": figures.clients, "errors": figures.errors})
