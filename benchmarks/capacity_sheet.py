"""The arithmetic of capacity: what a number of users takes, from what one run was measured to cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

STEPS = (1_000, 100_000, 10_000_000)
DAY = 86_400
GB = 1 << 30
MB = 1 << 20
KB = 1 << 10


def _said(default: float, about: str) -> Any:
    return field(default=default, metadata={"about": about})


@dataclass(frozen=True)
class Assumptions:
    """What nobody has measured: how people use it, and on what."""

    active: float = _said(0.2, "share of users active on a day")
    runs: float = _said(100, "runs of each a day")
    peak: float = _said(5, "peak, in averages")
    calls: float = _said(3, "calls of packs a run")
    writes: float = _said(1, "of them recorded in the ledger")
    seconds: float = _said(2, "seconds of a run")
    stored: float = _said(0.05, "share of runs that store a result")
    stored_kb: float = _said(200, "its KB")
    background: float = _said(0.02, "share of runs in the background")
    run_mb: float = _said(30, "MB of a run in flight, with its data")
    event_kb: float = _said(1.2, "KB of events a run")
    load: float = _said(0.5, "share of a core used at the peak")
    at_once: float = _said(0.05, "share of active users at work at once")
    own: float = _said(2, "processes that each has alone")
    own_mb: float = _said(30, "their MB")
    cores: float = _said(8, "cores of a machine")
    machine_gb: float = _said(64, "its GB")
    ledger_days: float = _said(30, "days the ledger keeps")


@dataclass(frozen=True)
class Figure:
    """The median of several rounds, and the interval that holds 90 % of medians drawn from them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, found: Mapping[str, float]) -> Figure:
        """Return the figure that JSON holds."""
        return cls(found["median"], found["low"], found["high"])


@dataclass(frozen=True)
class Costs:
    """What was measured of one of each, in milliseconds of CPU, and the bytes that it leaves."""

    run_ms: float
    nested_ms: float
    worker_ms: float
    recorded_ms: float
    remote_ms: float
    stored_ms: float
    background_ms: float
    redis_run_ms: float
    postgres_entry_ms: float
    postgres_background_ms: float
    entry_bytes: float

    @classmethod
    def of(cls, measured: Mapping[str, Mapping[str, float]]) -> Costs:
        """Return the medians of what was measured; what was not counts as nothing."""

        def median(name: str) -> float:
            return max(0.0, measured[name]["median"]) if name in measured else 0.0

        return cls(
            run_ms=median("run, CPU ms"),
            nested_ms=median("nested call, CPU ms"),
            worker_ms=median("worker call, CPU ms"),
            recorded_ms=median("ledger entry, CPU ms"),
            remote_ms=median("remote call, CPU ms"),
            stored_ms=median("stored result, CPU ms"),
            background_ms=median("background run, CPU ms"),
            redis_run_ms=median("run, CPU ms of Redis"),
            postgres_entry_ms=median("ledger entry, CPU ms of PostgreSQL"),
            postgres_background_ms=median("background run, CPU ms of PostgreSQL"),
            entry_bytes=median("ledger entry, bytes"),
        )


@dataclass(frozen=True)
class Step:
    """What one number of users takes."""

    users: int
    runs_per_second: float
    peak_per_second: float
    cores: float
    remote_cores: float
    in_flight: float
    waiting_gb: float
    own_gb: float
    machines: int
    own_machines: int
    background_per_second: float
    redis_cores: float
    postgres_cores: float
    results_gb: float
    events_gb: float
    ledger_gb: float


def cpu_of_a_run(costs: Costs, given: Assumptions) -> float:
    """Return the milliseconds that a run takes with all that belongs to it."""
    calls = given.calls * costs.worker_ms + given.writes * costs.recorded_ms
    return costs.run_ms + calls + given.stored * costs.stored_ms + given.background * costs.background_ms


def step(users: int, costs: Costs, given: Assumptions) -> Step:
    """Return what *users* take."""
    a_day = users * given.active * given.runs
    peak = a_day / DAY * given.peak
    cores = peak * cpu_of_a_run(costs, given) / 1000 / given.load
    further = peak * given.calls * max(0.0, costs.remote_ms - costs.worker_ms) / 1000 / given.load
    waiting = peak * given.seconds * given.run_mb * MB / GB
    own = users * given.active * given.at_once * given.own * given.own_mb * MB / GB
    recorded = given.writes * costs.postgres_entry_ms + given.background * costs.postgres_background_ms
    return Step(
        users=users,
        runs_per_second=a_day / DAY,
        peak_per_second=peak,
        cores=cores,
        remote_cores=further,
        in_flight=peak * given.seconds,
        waiting_gb=waiting,
        own_gb=own,
        machines=math.ceil(max(cores / given.cores, waiting / given.machine_gb)) + 1,
        own_machines=math.ceil(own / given.machine_gb) if own > given.machine_gb / 2 else 0,
        background_per_second=peak * given.background,
        redis_cores=peak * costs.redis_run_ms / 1000,
        postgres_cores=peak * recorded / 1000 / given.load,
        results_gb=a_day * given.stored * given.stored_kb * KB / GB,
        events_gb=a_day * given.event_kb * KB / GB,
        ledger_gb=a_day * given.writes * costs.entry_bytes * given.ledger_days / GB,
    )


@dataclass(frozen=True)
class Bottleneck:
    """Something that there is one of, and how many users it carries."""

    what: str
    users: float
    then: str


def bottlenecks(costs: Costs, given: Assumptions) -> Sequence[Bottleneck]:
    """Return what runs out, in the order in which it does as users come."""
    one = step(1_000_000, costs, given)
    per_user = 1_000_000

    def carried(taken: float, there_is: float) -> float:
        return there_is / taken * per_user if taken else math.inf

    found = [
        Bottleneck(
            "memory of one machine, by processes that each user has alone",
            carried(one.own_gb, given.machine_gb),
            "serve these tools over HTTP; lower workers.idle_seconds",
        ),
        Bottleneck(
            "memory of one machine, by programs that wait",
            carried(one.waiting_gb, given.machine_gb),
            "more replicas; background runs for what takes minutes",
        ),
        Bottleneck(
            "cores of the machine of one PostgreSQL",
            carried(one.postgres_cores, given.cores),
            "several deployments, each with its PostgreSQL",
        ),
        Bottleneck("cores of one machine", carried(one.cores, given.cores), "more replicas behind the balancer"),
        Bottleneck(
            "the one core that one Redis uses",
            carried(one.redis_cores, given.load),
            "several deployments, each with its Redis",
        ),
    ]
    return sorted(found, key=lambda each: each.users)
