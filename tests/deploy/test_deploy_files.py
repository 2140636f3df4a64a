"""What is in deploy/ has the form that its readers ask for, and its parts agree with each other and with the server."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from jsonschema_rs import validator_for

from deploy.kubernetes_schemas import problems_of
from ot.config.expand import names_in
from ot.config.models import Config
from ot.team.http.listen_address import ListenAddress

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE_SCHEMA = "check_jsonschema/builtin_schemas/vendor/compose-spec.json"
SECONDS = re.compile(r"(\d+)s")
PAUSE_TO_END = 10
"""Seconds that a server needs to end, beside those of its open runs."""


def manifests() -> list[dict[str, Any]]:
    """Return all Kubernetes objects."""
    files = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [thing for file in files for thing in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def of_kind(kind: str, name: str = "onetool") -> dict[str, Any]:
    """Return the one object of that kind and name."""
    (found,) = [thing for thing in manifests() if thing["kind"] == kind and thing["metadata"]["name"] == name]
    return found


def pod(name: str = "onetool") -> dict[str, Any]:
    """Return what a pod is made of."""
    return of_kind("Deployment", name)["spec"]["template"]["spec"]


def container(name: str = "onetool") -> dict[str, Any]:
    """Return its one container."""
    (found,) = pod(name)["containers"]
    return found


def compose() -> dict[str, Any]:
    """Return the compose file."""
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))


def configurations() -> dict[str, str]:
    """Return the text of each configuration of a replica."""
    plain = (DEPLOY / "onetool.yaml").read_text(encoding="utf-8")
    return {"compose": plain, "kubernetes": of_kind("ConfigMap")["data"]["onetool.yaml"]}


def settings(place: str) -> Config:
    """Return a configuration as a server reads it."""
    return Config.model_validate(yaml.safe_load(configurations()[place]))


# ---------------------------------------------------------------- the form


@pytest.mark.parametrize("thing", manifests(), ids=lambda thing: f"{thing['kind']} {thing['metadata']['name']}")
def test_a_kubernetes_object_has_only_names_and_types_that_its_kind_has(thing: dict[str, Any]) -> None:
    assert problems_of(thing) == []


def test_a_misspelt_name_in_a_kubernetes_object_would_be_found() -> None:
    wrong = of_kind("PodDisruptionBudget")
    wrong["spec"]["maxUnavailabel"] = wrong["spec"].pop("maxUnavailable")
    assert problems_of(wrong)


def test_the_compose_file_is_one() -> None:
    schema = orjson.loads(Path(str(distribution("check-jsonschema").locate_file(COMPOSE_SCHEMA))).read_bytes())
    validator = validator_for(schema)
    assert [error.message for error in validator.iter_errors(compose())] == []
    assert not validator.is_valid(compose() | {"service": {}})


@pytest.mark.parametrize("place", ["compose", "kubernetes"])
def test_the_configuration_of_replicas_is_one_that_a_server_takes(place: str) -> None:
    found = settings(place)
    assert found.engines.use == "exact"
    assert found.state.redis
    assert found.state.keys
    assert found.http.tokens or found.http.oauth


# ---------------------------------------------------------------- the parts agree


def test_every_secret_of_the_compose_file_is_asked_for_by_name() -> None:
    named = {line.partition("=")[0] for line in (DEPLOY / "secrets.env.example").read_text().splitlines()}
    wanted = names_in(configurations()["compose"]) - {"NAME"}
    assert wanted == {name for name in named if not name.startswith("#")}


def test_every_file_that_the_compose_file_mounts_exists() -> None:
    mounts = [mount for one in compose()["services"].values() for mount in one.get("volumes", ())]
    files = {mount.split(":")[0] for mount in mounts if mount.startswith("./")}
    assert files == {"./onetool.yaml", "./haproxy.cfg", "./otel-collector.yaml", "./redis-users.acl"}
    assert all((DEPLOY / file).is_file() for file in files)


def test_only_the_balancer_can_be_reached_and_only_from_this_machine() -> None:
    ports = {name: one["ports"] for name, one in compose()["services"].items() if "ports" in one}
    assert list(ports) == ["balancer"]
    assert all(port.startswith("127.0.0.1:") for port in ports["balancer"])


def test_the_balancer_knows_all_replicas_and_asks_whether_they_are_ready() -> None:
    text = (DEPLOY / "haproxy.cfg").read_text(encoding="utf-8")
    replicas = [name for name, one in compose()["services"].items() if "--http" in one.get("command", ())]
    assert re.findall(r"server (\S+) (\S+):8000", text) == [(name, name) for name in replicas]
    assert "httpchk GET /readyz" in text
    # Whatever was sent may have had an effect.
    assert re.findall(r"retry-on (.*)", text) == ["conn-failure"]
    (seconds,) = map(int, re.findall(r"timeout server (\d+)s", text))
    assert seconds > settings("compose").limits.run_seconds


def seconds_to_end(config: Config) -> float:
    """Return how long a replica may take from the signal to its end."""
    return config.http.notice_seconds + config.limits.drain_seconds + PAUSE_TO_END


def test_replicas_have_the_time_to_end_their_runs() -> None:
    for one in ("onetool-1", "onetool-2", "worker"):
        (grace,) = map(int, SECONDS.findall(compose()["services"][one]["stop_grace_period"]))
        assert grace >= seconds_to_end(settings("compose"))
    for name in ("onetool", "onetool-worker"):
        assert pod(name)["terminationGracePeriodSeconds"] >= seconds_to_end(settings("kubernetes"))
    assert settings("kubernetes").http.notice_seconds > container()["readinessProbe"]["periodSeconds"]
    assert settings("kubernetes").limits.drain_seconds >= settings("kubernetes").limits.run_seconds


def test_ports_are_those_that_the_server_is_told() -> None:
    arguments: list[str] = container()["args"]
    assert arguments == compose()["services"]["onetool-1"]["command"]
    served = ListenAddress.read(arguments[arguments.index("--http") + 1]).port
    measured = ListenAddress.read(settings("kubernetes").telemetry.metrics).port
    named = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert named == {"http": served, "metrics": measured}
    assert of_kind("Service")["spec"]["ports"][0]["targetPort"] == "http"
    probes = {container()[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    assert probes == {"/readyz", "/healthz"}
    allowed = {rule["ports"][0]["port"] for rule in of_kind("NetworkPolicy")["spec"]["ingress"]}
    assert allowed == set(named.values())


def test_the_ports_of_workers_are_those_of_their_probes_and_metrics() -> None:
    worker = container("onetool-worker")
    arguments: list[str] = worker["args"]
    told = ListenAddress.read(arguments[arguments.index("--probes") + 1]).port
    measured = ListenAddress.read(settings("kubernetes").telemetry.metrics).port
    assert {port["name"]: port["containerPort"] for port in worker["ports"]} == {"probes": told, "metrics": measured}
    assert {worker[f"{name}Probe"]["httpGet"]["port"] for name in ("startup", "readiness", "liveness")} == {"probes"}
    labels = of_kind("Deployment", "onetool-worker")["spec"]["template"]["metadata"]["labels"]
    policy = of_kind("NetworkPolicy", "onetool-worker")["spec"]
    assert policy["podSelector"]["matchLabels"] == labels
    assert policy["egress"] == of_kind("NetworkPolicy")["spec"]["egress"]
    # Whoever balances requests must not send any to them.
    assert labels != of_kind("Service")["spec"]["selector"]


def test_a_worker_is_a_replica_but_for_what_it_does_and_its_user_of_redis() -> None:
    replica, worker = compose()["services"]["onetool-1"], compose()["services"]["worker"]
    differ = {name for name in replica | worker if replica.get(name) != worker.get(name)}
    assert differ == {"command", "env_file", "healthcheck", "hostname"}
    ours, others = container(), container("onetool-worker")
    probes = {"startupProbe", "readinessProbe", "livenessProbe"}
    assert {name for name in ours if ours[name] != others[name]} == {"name", "args", "envFrom", "ports"} | probes
    for file, user in (("secrets.env.example", "replica"), ("worker.env.example", "worker")):
        assert f"REDIS_URL=redis://{user}:" in (DEPLOY / file).read_text()
        assert f"\nuser {user} on " in (DEPLOY / "redis-users.acl").read_text()


def test_what_the_ledger_writes_is_on_disk_before_a_call_is_sent() -> None:
    command = " ".join(compose()["services"]["valkey"]["command"])
    assert "--appendonly yes --appendfsync always" in command
    assert "--maxmemory-policy noeviction" in command


def test_all_objects_speak_of_the_same_pods() -> None:
    labels = of_kind("Deployment")["spec"]["template"]["metadata"]["labels"]
    selectors = [
        of_kind("Deployment")["spec"]["selector"]["matchLabels"],
        of_kind("Service")["spec"]["selector"],
        of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        of_kind("NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors)
    places = {thing["metadata"].get("namespace", thing["metadata"]["name"]) for thing in manifests()}
    assert places == {"onetool"}
    mounted = {mount["name"] for mount in container()["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod()["volumes"]}


def test_pods_have_no_rights_and_no_token_of_the_cluster() -> None:
    assert of_kind("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert pod()["automountServiceAccountToken"] is False
    rights, own = pod()["securityContext"], container()["securityContext"]
    assert rights["runAsNonRoot"]
    assert rights["seccompProfile"]["type"] == "RuntimeDefault"
    assert (own["allowPrivilegeEscalation"], own["readOnlyRootFilesystem"]) == (False, True)
    assert own["capabilities"] == {"drop": ["ALL"]}
    outside = of_kind("NetworkPolicy")["spec"]["egress"][-1]["to"][0]["ipBlock"]
    assert "169.254.0.0/16" in outside["except"]


def test_the_autoscaler_goes_by_a_figure_that_the_server_shows() -> None:
    (metric,) = of_kind("HorizontalPodAutoscaler")["spec"]["metrics"]
    source = Path(__file__).parents[2] / "src/ot/team/telemetry/metrics.py"
    assert f'"{metric["pods"]["metric"]["name"]}"' in source.read_text(encoding="utf-8")
