"""What an operator sees of a real server over HTTP: one request, followed through all that is written about it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from free_ports import free_port
from http_server import CLASSIC, MODERN, HttpServer, call, reply_of
from pace import PATIENCE, patiently
from team.otlp_receiver import OtlpReceiver

CONFIG = "engines: {use: exact}\nlogs: {level: INFO}\n"
PROGRAM = "file.write(path='{name}.txt', content='canary7f3a'); file.read(path='{name}.txt')"


@dataclass
class Watched:
    """A server, and all that watches it."""

    server: HttpServer
    collector: OtlpReceiver
    audit: Path
    metrics: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A server with traces, metrics and an audit log."""
    root, port = tmp_path_factory.mktemp("watched"), free_port()
    audit = root / "audit.jsonl"
    with OtlpReceiver() as collector:
        telemetry = {"traces": collector.url, "metrics": f"127.0.0.1:{port}", "audit": str(audit)}
        with HttpServer.start(root, f"{CONFIG}telemetry: {json.dumps(telemetry)}\n") as server:
            yield Watched(server, collector, audit, f"http://127.0.0.1:{port}/metrics")


def asked(server: HttpServer, era: str, name: str) -> httpx2.Response:
    """Run a program that writes a file, as the request called *name*."""
    headers = server.headers(era) | {"X-Request-Id": name}
    return httpx2.post(server.url, json=call(PROGRAM.format(name=name), era), headers=headers, timeout=30)


@pytest.mark.parametrize("era", [MODERN, CLASSIC])
def test_one_id_names_a_request_in_its_answer_reply_trace_audit_and_log(watched: Watched, era: str) -> None:
    name = f"req-{era}"
    response = asked(watched.server, era, name)
    assert response.headers["x-request-id"] == name
    reply = reply_of(response)["result"]
    assert reply["_meta"]["onetool"]["request"] == name
    assert "canary7f3a" in reply["content"][0]["text"]

    def complete(spans: object) -> bool:
        ours = {span.name for span in watched.collector.spans if span.trace in traces()}
        return ours >= {"tools/call run", "run program", "execute_tool file.write", "execute_tool file.read"}

    def traces() -> set[str]:
        found = watched.collector.spans
        return {span.trace for span in found if span.attributes.get("onetool.request.id") == name}

    watched.collector.wait_for(complete)
    assert b"canary7f3a" not in watched.collector.raw
    line = audit_line(watched, name)
    assert (line["tool"], line["outcome"], line["run"]) == ("file.write", "done", reply["_meta"]["onetool"]["run"])
    log = watched.server.place.home / ".onetool" / "logs" / "onetool.log"
    for _ in patiently():
        lines = whole_lines(log)
        if {"tool.call", "runner.execute"} <= {line.get("span") for line in lines if line.get("request") == name}:
            return
    raise AssertionError(log.read_text())


def whole_lines(file: Path) -> list[dict[str, str]]:
    """Return the lines of JSON in a file that a server writes: the last one may not be whole yet."""
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]]


def audit_line(watched: Watched, name: str) -> dict[str, str]:
    """Return the line that the request called *name* left, once it is there."""
    for _ in patiently():
        lines = whole_lines(watched.audit)
        if found := [line for line in lines if line["request"] == name]:
            return found[0]
    raise AssertionError(watched.audit.read_text())


def test_metrics_are_on_their_own_port_only(watched: Watched) -> None:
    refused = httpx2.post(watched.server.url, json={}, headers={"accept": "*/*"}, timeout=PATIENCE)
    assert refused.status_code == 401
    text = httpx2.get(watched.metrics, timeout=PATIENCE).text
    assert 'onetool_refused_requests_total{status="401"}' in text
    assert "onetool_dropped_spans_total 0.0" in text
    assert 'onetool_engine_processes{state="ready"}' in text
    assert "canary" not in text
    assert watched.server.get("/metrics").status_code == 404


def test_spans_and_effects_are_complete_when_the_server_has_ended(tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    with OtlpReceiver() as collector:
        telemetry = json.dumps({"traces": collector.url, "audit": str(audit)})
        with HttpServer.start(tmp_path, f"{CONFIG}telemetry: {telemetry}\n") as server:
            asked(server, MODERN, "last")
            server.signal()
            assert server.wait() == 0
        assert {"run program", "execute_tool file.write"} <= {span.name for span in collector.spans}
    assert [json.loads(line)["tool"] for line in audit.read_text().splitlines()] == ["file.write"]
