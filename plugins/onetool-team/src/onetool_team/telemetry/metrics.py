"""RunMetrics: what Prometheus reads of runs and calls, counted as they end; no label names a person or a tool."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from onetool_team.telemetry.live_figures import Figure, LiveFigures
from ot.execution.tool_executor import CallRecord
from ot.stats.rows import RunBegun, RunRow

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
MAX_PACKS = 200
UNKNOWN, OTHER = "(unknown)", "(other)"
"""Stand for packs that do not exist, and for those beyond the first 200."""
REFUSED = 400
"""The first status that says so."""


class RunMetrics:
    """An observer of runs and calls that counts them."""

    def __init__(self, version: str, figures: LiveFigures) -> None:
        """Count from nothing; *figures* are read whenever Prometheus asks."""
        self.registry = CollectorRegistry()
        self._runs = Counter("onetool_runs", "Runs that have ended", ["engine", "outcome"], registry=self.registry)
        self._run_seconds = _seconds("onetool_run_seconds", "Duration of runs", "engine", self.registry)
        self._calls = Counter("onetool_calls", "Calls of tools", ["pack", "outcome"], registry=self.registry)
        self._call_seconds = _seconds("onetool_call_seconds", "Duration of calls", "pack", self.registry)
        self._in_flight = Gauge("onetool_runs_in_flight", "Runs that have begun and not ended", registry=self.registry)
        self._refused = Counter("onetool_refused_requests", "Refused HTTP requests", ["status"], registry=self.registry)
        self._stored = Counter("onetool_stored_bytes", "Bytes of stored results", registry=self.registry)
        built = Gauge("onetool_build_info", "The version that runs", ["version"], registry=self.registry)
        built.labels(version).set(1)
        self._packs: set[str] = set()
        # To find the children by their labels takes longer than to count.
        self._of_run = cache(partial(_label, self._runs, self._run_seconds))
        self._of_call = cache(partial(_label, self._calls, self._call_seconds))
        self.registry.register(_Live(figures))
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def run_began(self, run: RunBegun) -> Callable[[RunRow], None]:
        """Count a run as in flight until the function is called."""
        self._in_flight.inc()
        return lambda row: self._in_flight.dec()

    def run_finished(self, run: RunRow) -> None:
        """Count a run that has ended; errors of runs are a short list of ours."""
        self._of_run(run.engine, run.error_type or "ok").add(run.duration_ms / 1000)

    def finished(self, call: CallRecord) -> None:
        """Count a call that has ended."""
        self._of_call(self._pack(call), "error" if call.error else "ok").add(call.seconds)

    def count_answer(self, status: int) -> None:
        """Count an HTTP request that was refused."""
        if status >= REFUSED:
            self._refused.labels(str(status)).inc()

    def count_refused_run(self, outcome: str) -> None:
        """Count a run that could not begin, as its *outcome* says."""
        self._runs.labels("none", outcome).inc()

    def count_result(self, size: int) -> None:
        """Count a result that was stored."""
        self._stored.inc(size)

    def _pack(self, call: CallRecord) -> str:
        pack = call.tool.partition(".")[0] if call.source else UNKNOWN
        if pack in self._packs:
            return pack
        if len(self._packs) >= MAX_PACKS:
            return OTHER
        self._packs.add(pack)
        return pack


@dataclass(frozen=True, slots=True)
class _Counted:
    """The number and the durations of what has the same labels."""

    number: Counter
    seconds: Histogram

    def add(self, seconds: float) -> None:
        self.number.inc()
        self.seconds.observe(seconds)


def _label(number: Counter, seconds: Histogram, of: str, outcome: str) -> _Counted:
    return _Counted(number.labels(of, outcome), seconds.labels(of))


def _seconds(name: str, text: str, label: str, registry: CollectorRegistry) -> Histogram:
    return Histogram(name, text, [label], buckets=SECONDS, registry=registry)


class _Live(Collector):
    """Turns live figures into what Prometheus reads."""

    def __init__(self, figures: LiveFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        return [_metric(figure) for figure in self._figures.read()]


def _metric(figure: Figure) -> Metric:
    labels = [figure.label] if figure.label else []
    kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
    metric = kind(f"onetool_{figure.name}", figure.text, labels=labels)
    for value, number in figure.values.items():
        metric.add_metric([value] if figure.label else [], number)
    return metric
