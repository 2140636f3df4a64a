"""A collector on loopback: it takes spans as OTLP over HTTP, decodes them, and can be told to misbehave."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import anyio.to_thread
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pace import PATIENCE

ERROR = 2
"""The code of a status that says so."""


@dataclass(frozen=True)
class Span:
    """A span, as it came over the wire."""

    name: str
    kind: int
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    failed: bool
    message: str
    events: int
    seconds: float
    resource: dict[str, Any]


@dataclass
class OtlpReceiver:
    """Keeps all spans; ``status`` is what it answers, and ``gate`` what it waits for before."""

    status: int = 200
    gate: threading.Event = field(default_factory=threading.Event)
    raw: bytes = b""
    requests: int = 0
    spans: list[Span] = field(default_factory=list[Span])
    _came: threading.Condition = field(default_factory=threading.Condition)

    def __enter__(self) -> Self:
        self.gate.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                zipped = self.headers.get("Content-Encoding") == "gzip"
                receiver._take(gzip.decompress(body) if zipped else body, self.path)
                receiver.gate.wait(PATIENCE)
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE)

    @property
    def url(self) -> str:
        """Where it is, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def wait_for(self, done: Callable[[Sequence[Span]], bool]) -> list[Span]:
        """Return all spans once those that came are *done*."""
        with self._came:
            assert self._came.wait_for(lambda: done(self.spans), PATIENCE), [span.name for span in self.spans]
            return list(self.spans)

    async def came(self, done: Callable[[Sequence[Span]], bool]) -> list[Span]:
        """Return the same while the event loop goes on."""
        return await anyio.to_thread.run_sync(self.wait_for, done)

    async def names_came(self, *names: str) -> dict[str, Span]:
        """Return the last span of each name, once all have come."""
        spans = await self.came(lambda spans: {span.name for span in spans} >= set(names))
        return {span.name: span for span in spans}

    def _take(self, body: bytes, path: str) -> None:
        assert path == "/v1/traces"
        request = ExportTraceServiceRequest.FromString(body)
        with self._came:
            self.raw += body
            self.requests += 1
            self.spans += [
                _span(span, _attributes(group.resource.attributes))
                for group in request.resource_spans
                for scope in group.scope_spans
                for span in scope.spans
            ]
            self._came.notify_all()


def _span(span: Any, resource: dict[str, Any]) -> Span:
    return Span(
        span.name,
        span.kind,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        _attributes(span.attributes),
        span.status.code == ERROR,
        span.status.message,
        len(span.events),
        (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        resource,
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in pairs}
