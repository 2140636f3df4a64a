"""The dashboard and the alerts of deploy/ ask for nothing but what a server and a worker really expose."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from checkout import ROOT
from free_ports import free_port
from http_server import HttpServer
from onetool_team.auth.static_tokens import new_token, token_hash
from ot import errors
from pace import PATIENCE, patiently
from postgres_server import postgres_server
from state.redis_process import running_redis
from system_package import require_programs
from team.background.worker_process import WorkerProcess

pytestmark = pytest.mark.timeout(120)

ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
CONFIG = """
engines: {{use: portable}}
state: {{redis: "{redis}", postgres: "{postgres}", keys: ["{key}"]}}
http: {{tokens: {{ann: {{hash: "{token}"}}}}}}
telemetry: {{metrics: "127.0.0.1:{port}", audit: "{audit}", traces: "http://127.0.0.1:9"}}
"""
METRIC = re.compile(r"\b(?:onetool|process|python)_\w+|\bup\b")
SELECTOR = re.compile(r"\b((?:onetool|process|python)_\w+)\{([^}]*)\}")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
BY_PROMETHEUS = {"up", "instance", "job"}
"""The metric and the labels that a scrape itself makes."""

type Exposed = dict[str, set[str]]
"""The names of samples, each with its labels."""


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Generator[Exposed]:
    """What a replica and a worker expose, once there was a run, a refusal, a call and a failed run."""
    root, token = tmp_path_factory.mktemp("exposed"), new_token()
    found: Exposed = {}
    with running_redis() as redis, postgres_server() as postgres:
        values = {
            "redis": redis.url,
            "postgres": postgres.address,
            "key": "k" * 32,
            "token": token_hash(token),
            "audit": root / "audit.jsonl",
        }
        ports = free_port(), free_port()
        with HttpServer.start(root / "replica", CONFIG.format(port=ports[0], **values)) as replica:
            worker = WorkerProcess.start(root / "worker", CONFIG.format(port=ports[1], **values))
            try:
                replica.run("file.write(path='a.txt', content='x')", token=token)
                replica.run("1 / 0", token=token)
                replica.run("1", token="nobody's")
                for port in ports:
                    for family in read(port):
                        # One that counts by state has no sample before the first state.
                        found.setdefault(family.name, set())
                        for sample in family.samples:
                            found.setdefault(sample.name, set()).update(sample.labels)
                yield found
            finally:
                worker.close()


def read(port: int) -> list[Any]:
    """Return all families, once runs are counted."""
    for _ in patiently():
        text = httpx2.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text
        if "onetool_background_runs_running" in text or "onetool_calls_total{" in text:
            return list(text_string_to_metric_families(text))
    raise AssertionError(port)


def of_dashboard(file: Path) -> dict[str, str]:
    """Return the queries of a dashboard by their panels."""
    panels = json.loads(file.read_text())["panels"]
    return {f"{panel['title']} {one['refId']}": one["expr"] for panel in panels for one in panel["targets"]}


def of_alerts() -> dict[str, str]:
    """Return the expressions of the alerts by their names."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def queries() -> dict[str, str]:
    """Return everything that is asked for."""
    return of_alerts() | {name: asked for file in DASHBOARDS for name, asked in of_dashboard(file).items()}


def unknown(asked: Iterable[str], exposed: Exposed) -> set[str]:
    """Return the metrics, and labels of metrics, that *asked* names and nobody exposes."""
    found: set[str] = set()
    for query in asked:
        found |= set(METRIC.findall(query)) - exposed.keys() - BY_PROMETHEUS
        for metric, selector in SELECTOR.findall(query):
            labels = set(LABEL.findall(selector)) - BY_PROMETHEUS
            known = exposed.get(metric, set()) or labels
            found |= {f"{metric}.{label}" for label in labels - known}
    return found


@pytest.mark.parametrize("name", queries())
def test_every_metric_and_label_that_is_asked_for_is_exposed(name: str, exposed: Exposed) -> None:
    assert unknown([queries()[name]], exposed) == set()


def test_a_metric_or_a_label_that_does_not_exist_is_noticed(exposed: Exposed) -> None:
    asked = 'rate(onetool_run_total[5m]) + onetool_calls_total{tool="x", pack="file"} + process_memory_bytes'
    assert unknown([asked], exposed) == {"onetool_run_total", "onetool_calls_total.tool", "process_memory_bytes"}


def test_every_metric_of_ours_is_on_the_dashboard(exposed: Exposed) -> None:
    shown = " ".join(asked for file in DASHBOARDS for asked in of_dashboard(file).values())
    samples = {name for name in exposed if exposed[name] or f"{name}_total" not in exposed}
    parts = ("_created", "_sum", "_count", "_info", "_seconds")
    ours = {name for name in samples if name.startswith("onetool_") and not name.endswith(parts)}
    assert {name for name in ours if name not in shown} == set()


def test_outcomes_that_alerts_name_are_errors_of_ours() -> None:
    named = re.findall(r'outcome="(\w+)"', " ".join(of_alerts().values()))
    assert named
    assert all(hasattr(errors, name) for name in named)


def test_prometheus_takes_the_rules_and_they_fire_when_they_should() -> None:
    require_programs("promtool")
    for words in (["check", "rules", ALERTS.name], ["test", "rules", "alerts_test.yaml"]):
        ended = subprocess.run(["promtool", *words], cwd=ALERTS.parent, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    tested = (ALERTS.parent / "alerts_test.yaml").read_text()
    assert all(f"alertname: {name}\n        exp_alerts" in tested for name in of_alerts())


def test_every_panel_has_a_place_of_its_own() -> None:
    for file in DASHBOARDS:
        panels = json.loads(file.read_text())["panels"]
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
        assert len(set(places)) == len(places)
        assert len({panel["id"] for panel in panels}) == len(panels)
