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

from checkout import ROOT
from deploy.kubernetes_schemas import problems_of
from onetool_team.http.listen_address import ListenAddress
from onetool_team.settings import Http, SharedStore, Telemetry
from ot.config.expand import names_in
from ot.config.models import Config
from ot.config.sections import read_settings

DEPLOY = ROOT / "deploy"
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
    plain = (DEPLOY / "config" / "onetool.yaml").read_text(encoding="utf-8")
    return {"compose": plain, "kubernetes": of_kind("ConfigMap")["data"]["onetool.yaml"]}


def settings(place: str) -> Config:
    """Return a configuration as a server reads it."""
    return read_settings(yaml.safe_load(configurations()[place]))


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
    state, http = found.section(SharedStore), found.section(Http)
    assert state.redis
    assert state.keys
    assert http.tokens or http.oauth


# ---------------------------------------------------------------- the parts agree


def test_the_page_and_the_readme_have_the_same_commands() -> None:
    def commands(file: Path) -> list[str]:
        block = file.read_text(encoding="utf-8").split("```sh\n")[1].split("```")[0]
        return [line.partition("#")[0].strip() for line in block.splitlines()]

    assert commands(ROOT / "docs" / "how-to" / "deploy.md") == commands(DEPLOY / "README.md")


def test_every_secret_is_asked_for_by_name_and_nothing_starts_without_it() -> None:
    example = (DEPLOY / "env.example").read_text().splitlines()
    named = {line.partition("=")[0] for line in example if line and not line.startswith("#")}
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+):\?", text)) == named
    assert text.count("${") == text.count(":?")
    given = compose()["services"]["onetool-1"]["environment"]
    assert names_in(configurations()["compose"]) - {"NAME"} == set(given)


def test_no_service_is_given_a_secret_of_another() -> None:
    services = compose()["services"]
    assert {name for name, one in services.items() if one.get("environment")} == {
        "onetool-1", "onetool-2", "worker", "postgres", "s3",
    }  # fmt: skip
    assert set(services["postgres"]["environment"]) == {"POSTGRES_PASSWORD"}
    assert set(services["s3"]["environment"]) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    for name, user in (("onetool-1", "replica"), ("worker", "worker")):
        assert services[name]["environment"]["REDIS_URL"].startswith(f"redis://{user}:${{{user.upper()}_")
        assert f"\nuser {user} on " in (DEPLOY / "redis-users.acl").read_text()


def test_every_file_that_the_compose_file_mounts_exists() -> None:
    mounts = [mount for one in compose()["services"].values() for mount in one.get("volumes", ())]
    files = {mount.split(":")[0] for mount in mounts if mount.startswith("./")}
    assert files == {"./config", "./haproxy.cfg", "./otel-collector.yaml", "./postgres-roles.sql", "./redis-users.acl"}
    assert all((DEPLOY / file).exists() for file in files)


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
    return config.section(Http).notice_seconds + config.limits.drain_seconds + PAUSE_TO_END


def test_replicas_have_the_time_to_end_their_runs() -> None:
    for one in ("onetool-1", "onetool-2", "worker"):
        (grace,) = map(int, SECONDS.findall(compose()["services"][one]["stop_grace_period"]))
        assert grace >= seconds_to_end(settings("compose"))
    for name in ("onetool", "onetool-worker"):
        assert pod(name)["terminationGracePeriodSeconds"] >= seconds_to_end(settings("kubernetes"))
    assert settings("kubernetes").section(Http).notice_seconds > container()["readinessProbe"]["periodSeconds"]
    assert settings("kubernetes").limits.drain_seconds >= settings("kubernetes").limits.run_seconds


def test_ports_are_those_that_the_server_is_told() -> None:
    arguments: list[str] = container()["args"]
    assert arguments == compose()["services"]["onetool-1"]["command"]
    served = ListenAddress.read(arguments[arguments.index("--http") + 1]).port
    measured = ListenAddress.read(settings("kubernetes").section(Telemetry).metrics).port
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
    measured = ListenAddress.read(settings("kubernetes").section(Telemetry).metrics).port
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
    assert differ == {"command", "environment", "healthcheck", "hostname"}
    ours, others = container(), container("onetool-worker")
    probes = {"startupProbe", "readinessProbe", "livenessProbe"}
    assert {name for name in ours if ours[name] != others[name]} == {"name", "args", "envFrom", "ports"} | probes
    assert pod()["volumes"] == pod("onetool-worker")["volumes"]


@pytest.mark.parametrize("name", ["onetool", "onetool-worker"])
def test_replicas_share_their_home_and_see_edits_of_their_configuration(name: str) -> None:
    volumes = {volume["name"]: volume for volume in pod(name)["volumes"]}
    mounts = {mount["name"]: mount for mount in container(name)["volumeMounts"]}
    claim = volumes["home"]["persistentVolumeClaim"]["claimName"]
    assert of_kind("PersistentVolumeClaim", claim)["spec"]["accessModes"] == ["ReadWriteMany"]
    (link,) = pod(name)["initContainers"]
    assert mounts["home"] in link["volumeMounts"]
    # What is mounted by subPath does not change with its ConfigMap.
    assert not [mount for mount in mounts.values() if "subPath" in mount]
    assert f"{mounts['config']['mountPath']}/onetool.yaml {mounts['home']['mountPath']}/.onetool/" in link["command"][2]
    for place in ("compose", "kubernetes"):
        assert settings(place).section(Http).workspaces.each == f"{mounts['home']['mountPath']}/people"


def test_a_replica_is_ready_for_a_while_before_another_one_ends() -> None:
    for name in ("onetool", "onetool-worker"):
        spec = of_kind("Deployment", name)["spec"]
        assert spec["minReadySeconds"] > container()["readinessProbe"]["periodSeconds"]
        assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_what_must_not_be_lost_is_in_postgresql_on_a_volume_and_what_may_be_is_in_redis() -> None:
    services = compose()["services"]
    assert "ledger:/var/lib/postgresql/data" in services["postgres"]["volumes"]
    said = " ".join(services["postgres"]["command"])
    # As it is without them: in a loss of power, nothing is lost.
    assert not re.search("fsync|full_page_writes|synchronous_commit", said)
    (most,) = map(int, re.findall(r"max_connections=(\d+)", said))
    processes = [name for name in services if "POSTGRES_URL" in (services[name].get("environment") or {})]
    assert most >= 5 * len(processes)
    command = " ".join(services["valkey"]["command"])
    assert "--appendonly yes" in command
    assert "--maxmemory-policy noeviction" in command


def test_replicas_and_workers_reach_the_database_and_wait_for_it() -> None:
    for name in ("onetool-1", "onetool-2", "worker"):
        assert compose()["services"][name]["depends_on"]["postgres"] == {"condition": "service_healthy"}
    for name in ("onetool", "onetool-worker"):
        reached = {
            (rule["to"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/name"], port["port"])
            for rule in of_kind("NetworkPolicy", name)["spec"]["egress"]
            for port in rule["ports"]
            if "podSelector" in rule["to"][0]
        }
        assert reached == {("valkey", 6379), ("postgres", 5432)}
    for place in ("compose", "kubernetes"):
        assert settings(place).section(SharedStore).postgres == "${POSTGRES_URL}"


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
    source = ROOT / "plugins/onetool-team/src/onetool_team/telemetry/metrics.py"
    assert f'"{metric["pods"]["metric"]["name"]}"' in source.read_text(encoding="utf-8")
