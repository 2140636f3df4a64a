"""Runs and calls are spans below those of the protocol's library, and no span holds data."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client, FastMCP
from fastmcp.server.dependencies import get_context

from onetool_team.telemetry import span_queue
from onetool_team.telemetry.open_telemetry import TeamTelemetry, open_telemetry
from ot.config.models import Config
from ot.config.secrets import Secrets
from ot.config.sections import read_settings
from ot.errors import UnknownTool
from ot.execution.call_context import CallContext
from ot.execution.caller import Caller
from ot.logs import current_request
from ot.runtime.engines.engine import Engine
from ot.runtime.engines.forked.exact import ExactEngine
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.server.mcp_server import OneUser, build_server
from ot.workspace import Workspace
from pace import PATIENCE
from proxied.desk import http_server
from run_app import running_app
from team.otlp_receiver import OtlpReceiver

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("traces_anew")]

PACK = '''
    """A pack that tries things."""

    def search(*, query: str) -> str:
        """Search."""
        return f"found {query}"


    def fail(*, query: str) -> str:
        """Fail."""
        raise ValueError(query)
'''
CANARY = "canary7f3a"
INTERNAL, SERVER, CLIENT = 1, 2, 3
CONTEXT = CallContext(Caller("alice"), "run", 1, math.inf)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send at once."""
    monkeypatch.setattr(span_queue, "SEND_SECONDS", 0.01)
    monkeypatch.delenv("OTEL_TRACES_SAMPLER", raising=False)


@asynccontextmanager
async def traced(
    directory: Path,
    settings: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    engine: Engine | None = None,
) -> AsyncGenerator[tuple[Workspace, TeamTelemetry]]:
    """Yield a workspace whose runs are traced, and what traces them."""
    telemetry = open_telemetry(read_settings({"telemetry": settings}), Secrets(), environ or {})
    try:
        async with running_app(directory, {"web": PACK}, config, engine=engine or PortableEngine()) as app:
            app.watch(telemetry.watchers)
            yield app, telemetry
    finally:
        await telemetry.aclose()


@pytest.mark.parametrize("engine", [PortableEngine, ExactEngine])
async def test_a_run_and_its_calls_are_children_of_the_request(
    tmp_path: Path, collector: OtlpReceiver, engine: Callable[[], Engine]
) -> None:
    async with traced(tmp_path, {"traces": collector.url}, engine=engine()) as (app, _):
        await app.run("0")  # what comes later must not be taken for a part of it
        async with Client(build_server(OneUser(app), "1")) as client:
            await client.call_tool("run", {"command": f"web.search(query='{CANARY}')", "session": "s"})
        spans = await collector.names_came("tools/call run", "run program", "execute_tool web.search")
    request = next(s for s in collector.spans if (s.name, s.kind) == ("tools/call run", SERVER))
    run, call = spans["run program"], spans["execute_tool web.search"]
    assert (run.parent, call.parent) == (request.id, run.id)
    assert len({request.trace, run.trace, call.trace}) == 1
    assert (run.kind, call.kind) == (INTERNAL, INTERNAL)
    assert run.attributes["onetool.engine"] == app.engine.name
    assert run.attributes["onetool.session"] is True
    assert run.attributes["onetool.calls"] == 1
    expected = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "web.search", "onetool.pack": "web"}
    assert expected.items() <= call.attributes.items()
    assert call.attributes["gen_ai.tool.call.id"] == f"{run.attributes['onetool.run.id']}.1"
    assert not run.failed
    assert run.resource["service.name"] == "onetool"


async def test_a_proxied_server_is_handed_the_trace(tmp_path: Path, collector: OtlpReceiver) -> None:
    other = FastMCP("other")

    @other.tool
    def where() -> str:  # pyright: ignore[reportUnusedFunction] - registered
        context: Any = get_context().request_context
        return context.meta["traceparent"]

    async with (
        http_server(other) as (url, _),
        traced(
            tmp_path, {"traces": collector.url}, {"servers": {"other": {"url": url}}, "policy": {"allow": ["other.*"]}}
        ) as (app, _),
    ):
        reply = await app.run("other.where()")
        spans = await collector.names_came("execute_tool other.where", "MCP send tools/call where")
    call, sent = spans["execute_tool other.where"], spans["MCP send tools/call where"]
    assert reply.texts[0].startswith(f"00-{call.trace}-{sent.id}-")
    assert (sent.kind, sent.parent) == (CLIENT, call.id)


async def test_nothing_that_a_program_handles_is_in_a_span(tmp_path: Path, collector: OtlpReceiver) -> None:
    other = FastMCP("other")

    @other.tool
    def refuse(word: str) -> str:  # pyright: ignore[reportUnusedFunction] - registered
        raise ValueError(f"no {word}")

    command = f"""
def attempt(call):
    try:
        return call()
    except Exception as error:
        return str(error)
{CANARY} = "{CANARY}"
[web.search(query="{CANARY}"), attempt(lambda: web.fail(query="{CANARY}")),
 attempt(lambda: other.refuse(word="{CANARY}")), attempt(lambda: web.{CANARY}()), attempt(lambda: {CANARY}.x())]
"""
    async with http_server(other) as (url, _):
        config = {"servers": {"other": {"url": url}}, "policy": {"allow": ["other.*"]}}
        async with traced(tmp_path, {"traces": collector.url}, config) as (app, _):
            async with Client(build_server(OneUser(app), "1")) as client:
                reply = await client.call_tool("run", {"command": command}, raise_on_error=False)
                await client.call_tool("run", {"command": f"raise ValueError('{CANARY}')"}, raise_on_error=False)
                with pytest.raises(Exception, match="canary"):
                    await client.read_resource(f"ot://tool/web.{CANARY}")
            assert str(reply.content).count(CANARY) >= 4
            await app.run("1", Caller("https://issuer.example|alice"))
            await collector.came(lambda spans: sum(span.name == "run program" for span in spans) == 3)
            with pytest.raises(UnknownTool):
                await app.picture.runner.executor.call("web", CANARY, (), {}, CONTEXT)
            names = await collector.names_came("execute_tool web.fail", "execute_tool (unknown)", "resources/read")
    assert names["execute_tool web.fail"].failed
    assert names["execute_tool web.fail"].attributes["error.type"] == "ValueError"
    assert names["execute_tool other.refuse"].failed
    assert all(not span.message and not span.events for span in collector.spans)
    # The client of this test is traced too: what it asks for is in the name of its own spans.
    ours = [span for span in collector.spans if not span.name.startswith("MCP send resources")]
    assert CANARY not in str(ours)
    assert b"alice" not in collector.raw
    assert len({span.attributes["onetool.principal"] for span in ours if span.name == "run program"}) == 2


async def test_the_id_of_the_request_is_in_the_span_of_its_run(tmp_path: Path, collector: OtlpReceiver) -> None:
    async with traced(tmp_path, {"traces": collector.url}) as (app, _):
        token = current_request.set("r-7")
        try:
            reply = await app.run("1")
        finally:
            current_request.reset(token)
        spans = await collector.names_came("run program")
    assert spans["run program"].attributes["onetool.request.id"] == "r-7" == reply.meta["request"]


async def test_a_failed_run_names_its_error_and_a_principal_is_the_same_hash_each_time(
    tmp_path: Path, collector: OtlpReceiver
) -> None:
    async with traced(tmp_path, {"traces": collector.url}) as (app, _):
        for command in ("1/0", "'"):
            await app.run(command)
        spans = await collector.came(lambda spans: len(spans) == 2)
    assert [span.attributes["error.type"] for span in spans] == ["ProgramFailed", "InvalidSyntax"]
    assert len({span.attributes["onetool.principal"] for span in spans}) == 1


@pytest.mark.parametrize(("sample", "flags", "sent"), [(0.0, "", 0), (0.0, "01", 1), (1.0, "00", 0), (1.0, "", 1)])
async def test_a_part_of_traces_is_sent_and_a_caller_that_traces_decides(
    tmp_path: Path, collector: OtlpReceiver, sample: float, flags: str, sent: int
) -> None:
    from opentelemetry import context, propagate

    given = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-{flags}"} if flags else {}
    async with traced(tmp_path, {"traces": collector.url, "sample": sample}) as (app, telemetry):
        token = context.attach(propagate.extract(given))
        await app.run("web.search(query='x')")
        context.detach(token)
        assert telemetry.traces
        assert telemetry.traces.queue.force_flush()
        assert sum(span.name == "run program" for span in collector.spans) == sent
        assert all(span.trace == "a" * 32 for span in collector.spans if flags)


async def test_the_usual_variables_say_where_spans_go_and_whether(
    tmp_path: Path, collector: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "our-tools"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with traced(tmp_path, {}, environ=variables) as (app, _):
        await app.run("1")
        spans = await collector.names_came("run program")
        assert spans["run program"].resource["service.name"] == "our-tools"
    disabled = open_telemetry(Config(), Secrets(), variables | {"OTEL_SDK_DISABLED": "true"})
    assert disabled.traces is None


async def test_nothing_is_watched_where_nothing_is_asked_for() -> None:
    telemetry = open_telemetry(Config(), Secrets(), {})
    assert telemetry.watchers == type(telemetry.watchers)()
    await telemetry.aclose()


# ---------------------------------------------------------------- a collector that is down, slow, or full


async def test_a_collector_that_refuses_costs_spans_and_no_run(
    tmp_path: Path, collector: OtlpReceiver, caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 400
    async with traced(tmp_path, {"traces": collector.url}) as (app, telemetry):
        assert telemetry.traces
        queue = telemetry.traces.queue
        with caplog.at_level(logging.INFO, "onetool_team.telemetry"):
            for _ in range(2):
                assert not (await app.run("1")).is_error
                assert queue.force_flush()
            assert queue.dropped == 2
            collector.status = 200
            await app.run("1")
            assert queue.force_flush()
        assert queue.dropped == 2
        said = [record.getMessage() for record in caplog.records if "span" in record.name]
        assert said == ["spans cannot be sent and are dropped; metrics count them", "spans are sent again"]


async def test_a_collector_that_hangs_holds_up_nothing_and_what_does_not_fit_is_counted(
    tmp_path: Path, collector: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_queue, "MAX_SPANS", 10)
    monkeypatch.setattr(span_queue, "CLOSE_SECONDS", 0.1)
    async with traced(tmp_path, {"traces": collector.url}) as (app, telemetry):
        assert telemetry.traces
        collector.gate.clear()
        await app.run("1")
        await collector.came(lambda spans: bool(spans))  # its thread waits for the answer now
        began = time.monotonic()
        for _ in range(20):
            await app.run("1")
        assert time.monotonic() - began < PATIENCE / 2
        # The one that is on its way keeps its place until it was answered.
        assert telemetry.traces.queue.dropped == 20 - 9
    assert telemetry.traces.queue.dropped >= 20 - 9


async def test_a_collector_that_is_not_there_costs_a_run_no_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_queue, "CLOSE_SECONDS", 0.1)
    with OtlpReceiver() as gone:
        url = gone.url
    async with (
        running_app(tmp_path, {}, engine=PortableEngine()) as plain,
        traced(tmp_path, {"traces": url}) as (app, _),
    ):
        times: dict[str, list[float]] = {"plain": [], "traced": []}
        for _ in range(60):
            for name, workspace in (("plain", plain), ("traced", app)):
                began = time.perf_counter()
                assert not (await workspace.run("1+1")).is_error
                times[name].append(time.perf_counter() - began)
        medians = {name: sorted(found)[len(found) // 2] for name, found in times.items()}
        assert medians["traced"] < 2 * medians["plain"], medians


def test_spans_of_others_are_cleaned_of_users_and_addresses() -> None:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import Status, StatusCode

    attributes: dict[str, Any] = {"enduser.id": CANARY, "mcp.resource.uri": CANARY, "mcp.method.name": "m" * 500}
    status = Status(StatusCode.ERROR, CANARY)
    found = span_queue.clean(ReadableSpan("n" * 500, attributes=attributes, status=status))
    assert (len(found.name), dict(found.attributes or {})) == (200, {"mcp.method.name": "m" * 200})
    assert found.status.description is None
    assert found.status.status_code is StatusCode.ERROR


def test_one_user_imports_none_of_it() -> None:
    code = "import sys, ot.workspace, ot.server.mcp_server; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    costly = ("onetool_team", "opentelemetry.sdk", "opentelemetry.exporter", "prometheus_client")
    assert not [name for name in loaded if name.startswith(costly)]
