"""A collector, and a process that may have other traces for each test."""

from __future__ import annotations

from collections.abc import Iterator

import mcp.shared._otel
import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from team.otlp_receiver import OtlpReceiver


@pytest.fixture
def collector() -> Iterator[OtlpReceiver]:
    """One that takes everything."""
    with OtlpReceiver() as receiver:
        yield receiver


@pytest.fixture
def traces_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this test choose what makes the spans of the process, which is chosen once otherwise."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    # The protocol's library keeps the first that it used.
    monkeypatch.setattr(mcp.shared._otel, "_tracer", trace.ProxyTracer("mcp-python-sdk"))
