"""Prometheus reads runs, calls and the state of the server, on a port of their own, and no label names anybody."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from onetool_team.telemetry import live_figures, metrics
from onetool_team.telemetry.open_telemetry import TeamTelemetry, open_telemetry
from ot.config.secrets import Secrets
from ot.config.sections import read_settings
from ot.errors import ConfigError
from ot.execution.caller import Caller
from ot.execution.tool_executor import CallRecord
from ot.runtime.engines.portable.portable_engine import PortableEngine
from ot.stats.rows import RunBegun
from ot.workspace import Workspace
from pace import PATIENCE
from run_app import running_app

pytestmark = pytest.mark.anyio

PACK = '''
    """A pack that tries things."""

    def search(*, query: str) -> str:
        """Search."""
        return query


    def fail() -> str:
        """Fail."""
        raise ValueError("no")
'''
Samples = dict[tuple[str, tuple[str, ...]], float]


@asynccontextmanager
async def measured(directory: Path) -> AsyncGenerator[tuple[Workspace, TeamTelemetry]]:
    """Yield a workspace whose runs are counted, and what counts them."""
    telemetry = open_telemetry(read_settings({"telemetry": {"metrics": "127.0.0.1:0"}}), Secrets(), {})
    try:
        async with running_app(directory, {"web": PACK}, engine=PortableEngine()) as app:
            app.watch(telemetry.watchers)
            telemetry.figures.watch(app.host)
            yield app, telemetry
    finally:
        await telemetry.aclose()


async def scrape(telemetry: TeamTelemetry) -> Samples:
    """Return every sample by its name and the values of its labels, in the order of their names."""
    text = await scraped_text(telemetry)
    families = text_string_to_metric_families(text)
    return {
        (s.name, tuple(value for _, value in sorted(s.labels.items()))): s.value
        for family in families
        for s in family.samples
    }


async def scraped_text(telemetry: TeamTelemetry) -> str:
    """Return what a scrape gets."""
    assert telemetry.metrics_server
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        response = await client.get(f"http://127.0.0.1:{telemetry.metrics_server.port}/metrics")
    assert response.status_code == 200
    return response.text


async def test_runs_and_calls_are_counted_by_engine_pack_and_outcome(tmp_path: Path) -> None:
    async with measured(tmp_path) as (app, telemetry):
        for command in ("web.search(query='x'); web.search(query='y')", "1/0", "web.fail()"):
            await app.run(command)
        found = await scrape(telemetry)
    assert found["onetool_runs_total", ("portable", "ok")] == 1
    assert found["onetool_runs_total", ("portable", "ProgramFailed")] == 2
    assert found["onetool_run_seconds_count", ("portable",)] == 3
    assert found["onetool_calls_total", ("ok", "web")] == 2
    assert found["onetool_calls_total", ("error", "web")] == 1
    assert found["onetool_call_seconds_count", ("web",)] == 3
    assert found["onetool_runs_in_flight", ()] == 0
    assert found["onetool_engine_processes", ("running",)] == 0
    assert found["onetool_event_loop_wait_seconds", ()] >= 0
    assert found["process_resident_memory_bytes", ()] > 1 << 20


async def test_no_label_names_a_person_a_tool_or_what_was_asked(tmp_path: Path) -> None:
    async with measured(tmp_path) as (app, telemetry):
        await app.run("web.search(query='canary7f3a')", Caller("https://issuer.example|alice", client="canary-client"))
        await app.run("web.canary_tool()", Caller("https://issuer.example|bob"))
        text = await scraped_text(telemetry)
    assert not [word for word in ("canary", "alice", "bob", "search", "issuer") if word in text]


async def test_a_run_is_in_flight_until_it_ends(tmp_path: Path) -> None:
    async with measured(tmp_path) as (_, telemetry):
        begin = telemetry.watchers.open_run_span
        assert begin
        end = begin(RunBegun(Caller("alice"), "r", "portable"))
        assert (await scrape(telemetry))["onetool_runs_in_flight", ()] == 1
        end(None)  # pyright: ignore[reportArgumentType] - it only counts
        assert (await scrape(telemetry))["onetool_runs_in_flight", ()] == 0


async def test_a_cancelled_run_is_counted_as_such_and_leaves_none_in_flight(tmp_path: Path) -> None:
    async with measured(tmp_path) as (app, telemetry):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await app.run("1")
        with anyio.move_on_after(0.2):
            await app.run("while True: pass")
        found = await scrape(telemetry)
    assert found["onetool_runs_in_flight", ()] == 0
    assert found["onetool_runs_total", ("portable", "Cancelled")] >= 1


async def test_packs_beyond_the_first_ones_and_unknown_ones_share_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MAX_PACKS", 3)
    async with measured(tmp_path) as (_, telemetry):
        assert telemetry.metrics
        for number in range(10):
            telemetry.metrics.finished(CallRecord(f"p{number}.x", Caller("a"), "r", 0.1, source="worker"))
        telemetry.metrics.finished(CallRecord("made.up", Caller("a"), "r", 0.1, "UnknownTool"))
        found = await scrape(telemetry)
    packs = {labels[1] for name, labels in found if name == "onetool_calls_total"}
    assert packs == {"p0", "p1", "p2", "(other)"}


async def test_refused_requests_are_counted_by_status(tmp_path: Path) -> None:
    async with measured(tmp_path) as (_, telemetry):
        assert telemetry.metrics
        for status in (200, 401, 429, 429, 503):
            telemetry.metrics.count_answer(status)
        found = await scrape(telemetry)
    counted = {labels[0]: value for (name, labels), value in found.items() if name == "onetool_refused_requests_total"}
    assert counted == {"401": 1, "429": 2, "503": 1}


async def test_a_part_that_cannot_be_read_is_left_out_alone(tmp_path: Path) -> None:
    async def reachable() -> float:
        return 1.0

    def broken() -> float:
        raise RuntimeError("gone")

    async with measured(tmp_path) as (_, telemetry):
        telemetry.figures.add("runs_waiting", "Runs that wait", lambda: 3)
        telemetry.figures.add("shared_state_up", "Whether it is up", reachable)
        telemetry.figures.add("broken", "Never read", broken)
        found = await scrape(telemetry)
    assert (found["onetool_runs_waiting", ()], found["onetool_shared_state_up", ()]) == (3, 1)
    assert ("onetool_broken", ()) not in found


async def test_a_scrape_is_answered_while_the_event_loop_is_stuck(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_figures, "READ_SECONDS", 0.05)
    async with measured(tmp_path) as (_, telemetry):
        assert telemetry.metrics_server
        url, answered = f"http://127.0.0.1:{telemetry.metrics_server.port}/metrics", list[Any]()
        thread = threading.Thread(target=lambda: answered.append(httpx2.get(url, timeout=PATIENCE)))
        thread.start()
        thread.join(PATIENCE)  # the event loop does nothing else meanwhile
    assert "onetool_event_loop_wait_seconds 0.05" in answered[0].text


@pytest.mark.parametrize("address", ["x", "127.0.0.1:", "127.0.0.1:99999", "http://127.0.0.1:1"])
async def test_a_malformed_address_is_refused_by_name(address: str) -> None:
    config = read_settings({"telemetry": {"metrics": address}})
    with pytest.raises(ConfigError, match=r"telemetry\.metrics: .*is not an address"):
        open_telemetry(config, Secrets(), {})


async def test_metrics_are_on_loopback_unless_told() -> None:
    telemetry = open_telemetry(read_settings({"telemetry": {"metrics": "0"}}), Secrets(), {})
    assert telemetry.metrics_server
    assert telemetry.metrics_server._server.server_address[0] == "127.0.0.1"
    await telemetry.aclose()


async def test_bytes_of_stored_results_are_counted(tmp_path: Path) -> None:
    async with measured(tmp_path) as (app, telemetry):
        assert (await app.run("'x' * 60_000")).handles
        assert (await scrape(telemetry))["onetool_stored_bytes_total", ()] >= 60_000


async def test_a_port_in_use_is_refused_by_name() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        config = read_settings({"telemetry": {"metrics": address}})
        with pytest.raises(ConfigError, match=r"telemetry\.metrics: .* cannot be served"):
            open_telemetry(config, Secrets(), {})


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [
        ("rebound.example:9464", "/metrics", 421),
        ("evil.onetool.example", "/metrics", 421),
        ("a@b.example", "/metrics", 421),
        ("localhost:9464", "/metrics", 200),
        ("10.1.2.3:9464", "/metrics", 200),
        ("[::1]:9464", "/metrics", 200),
        ("onetool:9464", "/metrics", 200),
        ("tools.example", "/metrics", 200),
        ("Pod.Cluster.Local:9464", "/metrics", 200),
        ("localhost", "/", 404),
        ("localhost", "/debug", 404),
    ],
)
async def test_metrics_are_read_under_a_name_of_the_server_and_at_one_path(host: str, path: str, status: int) -> None:
    http = {"public_url": "https://tools.example", "hosts": ["pod.cluster.local"]}
    config = read_settings({"telemetry": {"metrics": "127.0.0.1:0"}, "http": http})
    telemetry = open_telemetry(config, Secrets(), {})
    assert telemetry.metrics_server
    try:
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            url = f"http://127.0.0.1:{telemetry.metrics_server.port}{path}"
            answer = await client.get(url, headers={"host": host})
        assert (answer.status_code, bool(answer.content)) == (status, status == 200)
    finally:
        await telemetry.aclose()
