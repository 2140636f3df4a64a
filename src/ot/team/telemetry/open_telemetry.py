"""open_telemetry: what the settings ask for of traces, metrics and audit, opened and closed together."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio.to_thread

from ot.config.expand import REFERENCE
from ot.config.models import Config
from ot.config.paths import expand_home
from ot.config.secrets import Secrets
from ot.config.team_settings import Http, Telemetry
from ot.errors import ConfigError
from ot.host import Host, Watchers
from ot.stats.rows import OpenRunSpan, RunBegun, RunRow
from ot.team.telemetry.audit_log import AuditLog
from ot.team.telemetry.keyed_hash import KeyedHash
from ot.team.telemetry.live_figures import LiveFigures, Read
from ot.version import installed_version

if TYPE_CHECKING:
    from ot.team.telemetry.metrics import RunMetrics
    from ot.team.telemetry.metrics_server import MetricsServer
    from ot.team.telemetry.traces import TraceProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
DISABLED = "OTEL_SDK_DISABLED"


@dataclass(slots=True)
class TeamTelemetry:
    """Everything that watches a team's server; where nothing is asked for, nothing does."""

    watchers: Watchers
    """What the host of the server is to be built with."""
    figures: LiveFigures
    traces: TraceProvider | None = None
    metrics: RunMetrics | None = None
    metrics_server: MetricsServer | None = None
    audit: AuditLog | None = None

    def watch(self, host: Host) -> None:
        """Show the engines, workers and servers of *host* among the metrics."""
        self.figures.watch(host)

    def show(self, name: str, text: str, read: Read) -> None:
        """Show the figure *name*, which *read* returns on the event loop, among the metrics."""
        self.figures.add(name, text, read)

    def count_answer(self, status: int) -> None:
        """Count how an HTTP request was answered."""
        if self.metrics:
            self.metrics.count_answer(status)

    async def aclose(self) -> None:
        """Send and write what is left, within a few seconds."""
        if self.metrics_server:
            await self.metrics_server.aclose()
        if self.audit:
            await anyio.to_thread.run_sync(self.audit.close)
        if self.traces:
            await anyio.to_thread.run_sync(self.traces.provider.shutdown)


def open_telemetry(config: Config, secrets: Secrets, environ: Mapping[str, str] = os.environ) -> TeamTelemetry:
    """Open what *config* asks for, on the running event loop.

    Raises:
        ConfigError: The address of the metrics cannot be served, or the audit log cannot be written.
    """
    settings, hashes = config.telemetry, KeyedHash(_find_shared_secret(config, secrets))
    figures = LiveFigures(asyncio.get_running_loop())
    audit = _audit(settings, hashes, figures) if settings.audit else None
    metrics, server = _metrics(settings.metrics, figures, config.http) if settings.metrics else (None, None)
    traces = _traces(settings, figures, environ) if _wants_traces(settings, environ) else None
    watchers = _watchers(traces, metrics, audit, hashes)
    return TeamTelemetry(watchers, figures, traces, metrics, server, audit)


def _wants_traces(settings: Telemetry, environ: Mapping[str, str]) -> bool:
    asked = bool(settings.traces) or any(environ.get(name) for name in ENDPOINTS)
    return asked and environ.get(DISABLED, "").lower() != "true"


def _find_shared_secret(config: Config, secrets: Secrets) -> str:
    """Return the secret that all replicas know, or nothing: then their hashes differ."""
    newest = next(iter(config.state.keys), "")
    return REFERENCE.sub(lambda found: secrets.get(found[1]) or found[2] or "", newest)


def _audit(settings: Telemetry, hashes: KeyedHash, figures: LiveFigures) -> AuditLog:
    audit = AuditLog(expand_home(settings.audit), hashes, required=settings.audit_required)
    try:
        audit.check()
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"telemetry.audit: {settings.audit!r} cannot be written: {why}") from None
    failed, lost = "Writes of the audit log that failed", "Lines of the audit log that were never written"
    figures.add("audit_failures", failed, lambda: audit.failures, counts=True)
    figures.add("audit_lost_lines", lost, lambda: audit.lost, counts=True)
    return audit


def _traces(settings: Telemetry, figures: LiveFigures, environ: Mapping[str, str]) -> TraceProvider:
    from opentelemetry import trace  # noqa: PLC0415 - only where spans are asked for

    from ot.team.telemetry.traces import trace_provider  # noqa: PLC0415 - as above: its SDK is an extra

    # Its texts may hold what a collector answered; the queue says what an operator must know.
    library = logging.getLogger("opentelemetry")
    library.propagate, library.handlers = False, [logging.NullHandler()]
    made = trace_provider(settings, installed_version(), environ)
    # The protocol's library knows the provider of the process only.
    trace.set_tracer_provider(made.provider)
    figures.add("dropped_spans", "Spans that were not sent", lambda: made.queue.dropped, counts=True)
    return made


def _metrics(address: str, figures: LiveFigures, http: Http) -> tuple[RunMetrics, MetricsServer]:
    from ot.team.telemetry.metrics import RunMetrics  # noqa: PLC0415 - as above
    from ot.team.telemetry.metrics_server import MetricsServer  # noqa: PLC0415 - as above

    metrics = RunMetrics(installed_version(), figures)
    return metrics, MetricsServer.start(address, metrics.registry, [urlsplit(http.public_url).netloc, *http.hosts])


def _watchers(
    traces: TraceProvider | None, metrics: RunMetrics | None, audit: AuditLog | None, hashes: KeyedHash
) -> Watchers:
    open_call, opens = None, list[OpenRunSpan]()
    if traces:
        from ot.team.telemetry.traces import TraceSpans  # noqa: PLC0415 - as above

        spans = TraceSpans(traces.provider, hashes)
        open_call = spans.open_call
        opens.append(spans.open_run)
    if metrics:
        opens.append(metrics.run_began)
    observers = (metrics,) if metrics else ()
    stored = metrics.count_result if metrics else None
    return Watchers(observers, observers, audit, open_call, _together(opens) if opens else None, stored)


def _together(opens: list[OpenRunSpan]) -> OpenRunSpan:
    """Return what begins all of *opens*, and ends them the other way round."""
    if len(opens) == 1:
        return opens[0]

    def open_all(run: RunBegun) -> Callable[[RunRow], None]:
        ends = [begin(run) for begin in opens]

        def end_all(row: RunRow) -> None:
            for end in reversed(ends):
                end(row)

        return end_all

    return open_all
