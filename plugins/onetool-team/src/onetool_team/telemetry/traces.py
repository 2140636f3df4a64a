"""Traces: a span for each run and each call, below those that the protocol's library makes of requests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry import context as contexts
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context
from opentelemetry.util.types import AttributeValue

from onetool_team.telemetry.keyed_hash import KeyedHash
from onetool_team.telemetry.span_queue import SpanQueue
from ot.execution.call_context import CallContext
from ot.execution.tool_executor import CallRecord
from ot.logs import current_request
from ot.stats.rows import RunBegun, RunRow

if TYPE_CHECKING:
    from onetool_team.settings import Telemetry

PATH = "/v1/traces"
UNKNOWN_TOOL = "(unknown)"
"""Stands for a tool that does not exist: programs could write anything there."""
ERROR_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,99}")
SAMPLER_VARIABLE = "OTEL_TRACES_SAMPLER"


@dataclass(frozen=True, slots=True)
class TraceProvider:
    """What makes spans, and what sends them."""

    provider: TracerProvider
    queue: SpanQueue


def trace_provider(settings: Telemetry, version: str, environ: Mapping[str, str]) -> TraceProvider:
    """Return what makes spans and sends them where *settings*, or the usual variables, say."""
    # What the variables say of the resource goes before what we say.
    named = Resource.create({"service.name": "onetool", "service.version": version})
    by_variable = settings.sample == 1.0 and SAMPLER_VARIABLE in environ
    provider = TracerProvider(
        sampler=None if by_variable else ParentBased(TraceIdRatioBased(settings.sample)),
        resource=named.merge(OTELResourceDetector().detect()),
        shutdown_on_exit=False,
    )
    queue = SpanQueue(OTLPSpanExporter(endpoint=_endpoint(settings.traces) if settings.traces else None))
    provider.add_span_processor(queue)
    return TraceProvider(provider, queue)


def _endpoint(address: str) -> str:
    """Return the address with the path of the protocol, where it has no path of its own."""
    has_path = "/" in address.partition("://")[2].rstrip("/")
    return address if has_path else f"{address.rstrip('/')}{PATH}"


class TraceSpans:
    """Begins and ends spans; arguments, values, programs and names of principals are in none."""

    def __init__(self, provider: TracerProvider, hashes: KeyedHash) -> None:
        """Make spans with *provider*; a principal is in them as a hash."""
        self._tracer = provider.get_tracer("onetool")
        self._hashes = hashes

    def open_run(self, run: RunBegun) -> Callable[[RunRow], None]:
        """Begin the span of a run."""
        span, leave = self._enter("run program")
        if span.is_recording():
            said: dict[str, AttributeValue] = {
                "onetool.engine": run.engine,
                "onetool.session": run.in_session,
                "onetool.run.id": run.run,
                "onetool.principal": self._hashes.of_text(run.caller.principal),
                "onetool.client": run.caller.client,
            }
            span.set_attributes(said | ({"onetool.request.id": id} if (id := current_request.get()) else {}))

        def end(row: RunRow) -> None:
            leave()
            if span.is_recording():
                span.set_attributes({"onetool.engine": row.engine, "onetool.calls": row.calls})
                _end(span, row.error_type)

        return end

    def open_call(self, tool: str, context: CallContext) -> Callable[[CallRecord], None]:
        """Begin the span of a call."""
        span, leave = self._enter("execute_tool")
        call = f"{context.run_id}.{context.call_id}"

        def end(record: CallRecord) -> None:
            leave()
            if span.is_recording():
                # Only now is it known whether there is such a tool.
                name = tool if record.source else UNKNOWN_TOOL
                span.update_name(f"execute_tool {name}")
                span.set_attributes(_of_call(name, call, record))
                _end(span, record.error)

        return end

    def _enter(self, name: str) -> tuple[Span, Callable[[], None]]:
        """Return a new span, which is the parent of others until the function is called."""
        span = self._tracer.start_span(name)
        token = contexts.attach(set_span_in_context(span))
        return span, lambda: contexts.detach(token)


def _of_call(name: str, call: str, record: CallRecord) -> dict[str, AttributeValue]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": call,
        "onetool.pack": name.partition(".")[0],
        "onetool.backend": record.source,
    }


def _end(span: Span, error: str) -> None:
    if error:
        span.set_attribute("error.type", error if ERROR_NAME.fullmatch(error) else "error")
        span.set_status(Status(StatusCode.ERROR))
    span.end()
