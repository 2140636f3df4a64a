"""SpanQueue: sends finished spans in batches, cleaned of everything that could hold data, and counts what it drops."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status

from ot.batches import Batches

logger = logging.getLogger(__name__)

MAX_SPANS = 8192
SEND_SECONDS = 1.0
CLOSE_SECONDS = 2.0
MAX_TEXT = 200
OURS = "onetool."
KEPT = frozenset(
    {
        "error.type",
        "fastmcp.component.type",
        "fastmcp.server.name",
        "gen_ai.operation.name",
        "gen_ai.tool.call.id",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "jsonrpc.request.id",
        "mcp.method.name",
        "mcp.protocol.version",
        "network.transport",
        "rpc.response.status_code",
    }
)
"""Attributes that are sent, whoever made the span: libraries put users, addresses and error texts into others."""


class SpanQueue(SpanProcessor):
    """Takes finished spans without ever waiting; a thread of its own sends them."""

    def __init__(self, exporter: SpanExporter) -> None:
        """Send through *exporter*, which tries again by itself for a while."""
        self._exporter = exporter
        self._failed = 0
        self._failing = False
        self._batches: Batches[ReadableSpan] = Batches(
            self._send, name="ot-spans", seconds=SEND_SECONDS, most=MAX_SPANS
        )

    @property
    def dropped(self) -> int:
        """How many spans were not sent: the queue was full, or nobody took them."""
        return self._batches.dropped + self._failed

    def on_end(self, span: ReadableSpan) -> None:
        """Take a span, if it is one of those to be sent."""
        if span.context and span.context.trace_flags.sampled:
            self._batches.add(span)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return whether all spans that have ended were sent or given up, waiting for it at most that long."""
        return self._batches.flush(timeout_millis / 1000)

    def shutdown(self) -> None:
        """Send what is left, within two seconds."""
        self._batches.close(CLOSE_SECONDS)
        self._exporter.shutdown()

    def _send(self, spans: list[ReadableSpan]) -> bool:
        """Send *spans* or count them as dropped: kept, they would only push out newer ones."""
        taken = self._exporter.export([clean(span) for span in spans]) is SpanExportResult.SUCCESS
        if not taken:
            self._failed += len(spans)
            if not self._failing:
                logger.warning("spans cannot be sent and are dropped; metrics count them")
        elif self._failing:
            logger.info("spans are sent again")
        self._failing = not taken
        return True


def clean(span: ReadableSpan) -> ReadableSpan:
    """Return *span* with the attributes that are known to hold no data, and without events or error texts."""
    return ReadableSpan(
        name=span.name[:MAX_TEXT],
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_keep_known(span.attributes or {}),
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _keep_known(attributes: Mapping[str, object]) -> dict[str, str | bool | int | float]:
    found = {name: value for name, value in attributes.items() if name in KEPT or name.startswith(OURS)}
    return {
        name: value if isinstance(value, bool | int | float) else str(value)[:MAX_TEXT] for name, value in found.items()
    }
