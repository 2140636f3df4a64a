"""The capacity sheet as the page shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from benchmarks.capacity_sheet import (
    STEPS,
    Assumptions,
    Bottleneck,
    Costs,
    Figure,
    Step,
    bottlenecks,
    cpu_of_a_run,
    step,
)

PEOPLE = "By the people that a server knows, 50 of them at work, in turns with a server for one:"
START, END = "<!-- capacity: begin -->", "<!-- capacity: end -->"
ENGINES = (
    ("programs", "the pool of one server", "the pool of each replica", "the same; several deployments"),
    ("packs", "local workers", "local workers, shared", "MCP servers over HTTP for the large ones"),
    ("background runs", "none, or as to the right", "PostgreSQL, `onetool worker`", "a PostgreSQL for each deployment"),
    ("results", "files", "an object store", "an object store"),
    ("statistics", "SQLite", "OpenTelemetry to Postgres or Parquet", "OpenTelemetry to ClickHouse"),
    ("ledger", "SQLite", "PostgreSQL", "a PostgreSQL for each deployment"),
    ("quotas", "memory", "Redis", "a Redis for each deployment"),
)


def sheet(measured: Mapping[str, Any], given: Assumptions) -> str:
    """Return all tables, from what was measured."""
    costs = Costs.of(measured["figures"])
    parts = [_measured(measured), principals_table(measured.get("principals", ()))]
    parts += [_steps(costs, given), _first(bottlenecks(costs, given)), _engines()]
    return "\n\n".join(filter(None, parts))


def _measured(measured: Mapping[str, Any]) -> str:
    about = measured["about"]
    rows = [f"| {name} | {_interval(Figure.of(found))} |" for name, found in measured["figures"].items()]
    head = f"Measured with the {about['engine']} engine, the median of {about['rounds']} rounds and its 90 % interval:"
    return "\n".join([head, "", "| one | costs |", "|---|---|", *rows])


def principals_table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the page."""
    if not found:
        return ""
    names = [name for name in found[0] if name != "principals"]
    rows = [f"| {name} | {' | '.join(f'{one[name]:g}' for one in found)} |" for name in names]
    columns = " | ".join(f"{one['principals']:,}" for one in found)
    return "\n".join([PEOPLE, "", f"| people | {columns} |", f"|---{'|---' * len(found)}|", *rows])


def _interval(figure: Figure) -> str:
    return f"{short(figure.median)} ({short(figure.low)} to {short(figure.high)})"


def _steps(costs: Costs, given: Assumptions) -> str:
    steps = [step(users, costs, given) for users in STEPS]
    names = " | ".join(f"{users:,} users" for users in STEPS)
    rows: list[tuple[str, Callable[[Step], str]]] = [
        ("runs per second, on average", lambda one: short(one.runs_per_second)),
        ("runs per second at the peak", lambda one: short(one.peak_per_second)),
        ("cores at the peak", lambda one: short(one.cores)),
        ("cores more with all packs on other hosts", lambda one: short(one.remote_cores)),
        ("programs in flight at the peak", lambda one: short(one.in_flight)),
        ("their memory", lambda one: gb(one.waiting_gb)),
        ("machines for these, one to spare", lambda one: str(one.machines)),
        ("memory of users' own processes", lambda one: gb(one.own_gb)),
        ("background runs per second at the peak", lambda one: short(one.background_per_second)),
        ("cores of Redis at the peak", lambda one: short(one.redis_cores)),
        ("cores of PostgreSQL at the peak", lambda one: short(one.postgres_cores)),
        ("results stored a day", lambda one: gb(one.results_gb)),
        ("events a day", lambda one: gb(one.events_gb)),
        (f"ledger of {short(given.ledger_days)} days", lambda one: gb(one.ledger_gb)),
    ]
    lines = [f"| {name} | {' | '.join(show(one) for one in steps)} |" for name, show in rows]
    said = f"A run with all that belongs to it takes {short(cpu_of_a_run(costs, given))} ms of CPU."
    return "\n".join([_assumed(given), "", said, "", f"| | {names} |", "|---|---|---|---|", *lines])


def _assumed(given: Assumptions) -> str:
    told = (f"{one.metadata['about']} {short(getattr(given, one.name))}" for one in fields(given))
    return f"Assumed, each an option of the script: {', '.join(told)}."


def _first(found: Sequence[Bottleneck]) -> str:
    lines = [f"| {one.what} | {users(one.users)} | {one.then} |" for one in found[:3]]
    return "\n".join(["| runs out first | at users | then |", "|---|---|---|", *lines])


def _engines() -> str:
    names = " | ".join(f"{users:,} users" for users in STEPS)
    rows = [f"| {' | '.join(row)} |" for row in ENGINES]
    return "\n".join([f"| job | {names} |", "|---|---|---|---|", *rows])


def short(value: float) -> str:
    """Return *value* with two digits that count, or whole if it has more."""
    if not value:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(abs(value))))
    text = f"{round(value, digits):,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else _rounded(value)


def _rounded(value: float) -> str:
    """Return a large number with three digits that count."""
    unit = 10 ** max(0, math.floor(math.log10(abs(value))) - 2)
    return f"{round(value / unit) * unit:,.0f}"


def gb(value: float) -> str:
    """Return gigabytes in the unit that fits."""
    if value >= 1000:
        return f"{short(value / 1024)} TB"
    return f"{short(value)} GB" if value >= 1 else f"{short(value * 1024)} MB"


def users(value: float) -> str:
    """Return a number of users."""
    return "never" if math.isinf(value) else _rounded(value)


def put_into(page: str, text: str) -> str:
    """Return *page* with *text* between its markers."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{text}\n{END}{after}"
