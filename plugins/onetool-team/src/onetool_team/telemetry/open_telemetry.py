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

from onetool_team.settings import Http, SharedStore, Telemetry
from onetool_team.telemetry.audit_log import AuditLog
from onetool_team.telemetry.keyed_hash import KeyedHash
from onetool_team.telemetry.live_figures import LiveFigures
from ot.brief_repr import Redact
from ot.config.expand import REFERENCE
from ot.config.models import Config
from ot.config.paths import expand_home
from ot.config.secrets import Secrets
from ot.errors import ConfigError
from ot.host import Watchers
from ot.stats.rows import OpenRunSpan, RunBegun, RunRow
from ot.version import installed_version

if TYPE_CHECKING:
    from onetool_team.telemetry.metrics import RunMetrics
    from onetool_team.telemetry.metrics_server import MetricsServer
    from onetool_team.telemetry.traces import TraceProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
DISABLED = "OTEL_SDK_DISABLED"
STANDARD_OUTPUT = "-"
"""Stands for it in ``telemetry.audit``."""


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

    async def aclose(self) -> None:
        """Send and write what is left, within a few seconds."""
        if self.metrics_server:
            await self.metrics_server.aclose()
        if self.audit:
            await anyio.to_thread.run_sync(self.audit.close)
        if self.traces:
            await anyio.to_thread.run_sync(self.traces.provider.shutdown)


def open_telemetry(
    config: Config, secrets: Secrets, environ: Mapping[str, str] = os.environ, redact: Redact = str
) -> TeamTelemetry:
    """Open what *config* asks for, on the running event loop; *redact* takes secrets out of what is written.

    Raises:
        ConfigError: The address of the metrics cannot be served, or the audit log cannot be written.
    """
    settings, hashes = config.section(Telemetry), open_hashes(config, secrets)
    figures = LiveFigures(asyncio.get_running_loop())
    audit = _audit(settings, hashes, figures, redact) if settings.audit else None
    metrics, server = _metrics(settings.metrics, figures, config.section(Http)) if settings.metrics else (None, None)
    traces = _traces(settings, figures, environ) if _wants_traces(settings, environ) else None
    watchers = _watchers(traces, metrics, audit, hashes)
    return TeamTelemetry(watchers, figures, traces, metrics, server, audit)


def _wants_traces(settings: Telemetry, environ: Mapping[str, str]) -> bool:
    asked = bool(settings.traces) or any(environ.get(name) for name in ENDPOINTS)
    return asked and environ.get(DISABLED, "").lower() != "true"


def _find_shared_secret(config: Config, secrets: Secrets) -> str:
    """Return the secret that all replicas know, or nothing: then their hashes differ."""
    newest = next(iter(config.section(SharedStore).keys), "")
    return REFERENCE.sub(lambda found: secrets.get(found[1]) or found[2] or "", newest)


def open_hashes(config: Config, secrets: Secrets) -> KeyedHash:
    """Return what hashes principals and arguments in traces and in the audit log."""
    return KeyedHash(_find_shared_secret(config, secrets))


def open_audit(settings: Telemetry, hashes: KeyedHash, redact: Redact = str) -> AuditLog:
    """Return the audit log that the settings name.

    Raises:
        ConfigError: It cannot be written.
    """
    path = None if settings.audit == STANDARD_OUTPUT else expand_home(settings.audit)
    audit = AuditLog(path, hashes, required=settings.audit_required, shown=settings.audit_arguments, redact=redact)
    try:
        audit.check()
    except OSError as error:
        why = error.strerror or str(error)
        raise ConfigError(f"telemetry.audit: {settings.audit!r} cannot be written: {why}") from None
    return audit


def _audit(settings: Telemetry, hashes: KeyedHash, figures: LiveFigures, redact: Redact) -> AuditLog:
    audit = open_audit(settings, hashes, redact)
    failed, lost = "Writes of the audit log that failed", "Lines of the audit log that were never written"
    figures.add("audit_failures", failed, lambda: audit.failures, counts=True)
    figures.add("audit_lost_lines", lost, lambda: audit.lost, counts=True)
    return audit


def _traces(settings: Telemetry, figures: LiveFigures, environ: Mapping[str, str]) -> TraceProvider:
    from opentelemetry import trace  # noqa: PLC0415 - only where spans are asked for

    from onetool_team.telemetry.traces import trace_provider  # noqa: PLC0415 - as above: its SDK is an extra

    # Its texts may hold what a collector answered; the queue says what an operator must know.
    library = logging.getLogger("opentelemetry")
    library.propagate, library.handlers = False, [logging.NullHandler()]
    made = trace_provider(settings, installed_version(), environ)
    # The protocol's library knows the provider of the process only.
    trace.set_tracer_provider(made.provider)
    figures.add("dropped_spans", "Spans that were not sent", lambda: made.queue.dropped, counts=True)
    return made


def _metrics(address: str, figures: LiveFigures, http: Http) -> tuple[RunMetrics, MetricsServer]:
    from onetool_team.telemetry.metrics import RunMetrics  # noqa: PLC0415 - as above
    from onetool_team.telemetry.metrics_server import MetricsServer  # noqa: PLC0415 - as above

    metrics = RunMetrics(installed_version(), figures)
    return metrics, MetricsServer.start(address, metrics.registry, [urlsplit(http.public_url).netloc, *http.hosts])


def _watchers(
    traces: TraceProvider | None, metrics: RunMetrics | None, audit: AuditLog | None, hashes: KeyedHash
) -> Watchers:
    open_call, opens = None, list[OpenRunSpan]()
    if traces:
        from onetool_team.telemetry.traces import TraceSpans  # noqa: PLC0415 - as above

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
