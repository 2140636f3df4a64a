"""What is in deploy/ is built and started as it is, in containers, and serves two people while a replica dies."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from deploy.played_pods import PlayedPods, played_pods
from deploy.shipped_images import IMAGE, ContainerMachine, container_machine
from deploy.shipped_team import ShippedTeam, shipped_team
from onetool_team.auth.static_tokens import new_token, token_hash
from pace import patiently, wait_while

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

REPLICAS = ("onetool-1", "onetool-2")
OURS = (*REPLICAS, "worker")
PEOPLE = ("alice", "bob")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Generator[ContainerMachine]:
    with container_machine(tmp_path_factory.mktemp("machine")) as made:
        yield made


@pytest.fixture(scope="module")
def team(machine: ContainerMachine, tmp_path_factory: pytest.TempPathFactory) -> Generator[ShippedTeam]:
    with shipped_team(machine, tmp_path_factory.mktemp("newcomer") / "onetool") as started:
        started.tokens["bob"] = new_token()
        started.let_in("bob", token_hash(started.tokens["bob"]))
        yield started


def test_an_edit_of_the_configuration_lets_somebody_in_without_a_restart(
    team: ShippedTeam, record_property: Callable[[str, object], None]
) -> None:
    record_property("typed", team.typed)
    for replica in REPLICAS:
        answer = ""
        for _ in patiently():
            if answer := team.execute(replica, *team.question("bob", "1 + 1"), check=False):
                break
        assert json.loads(answer) == 2


@pytest.mark.soak
def test_two_people_go_on_with_what_they_have_when_the_replica_that_served_them_is_killed(team: ShippedTeam) -> None:
    gone, left = REPLICAS
    large = "[{!r} * 30 for _ in range(3000)]"
    handles = {person: team.ask_replica(gone, person, large.format(person))["handle"] for person in PEOPLE}
    for person in PEOPLE:
        team.ask_replica(gone, person, f"memory.write(text='a note of {person}', scope='user')")
        team.ask_replica(gone, person, f"file.write(path='mine.txt', content='a file of {person}')")
    pid = team.inspect(gone)["State"]["Pid"]
    os.kill(pid, signal.SIGKILL)
    wait_while(lambda: Path(f"/proc/{pid}").exists())  # what was sent to it meanwhile would not be sent again
    for person in PEOPLE:
        found = team.ask(person, "[memory.list(scope='all'), file.read(path='mine.txt')]")
        assert f"a note of {person}" in found
        assert f"a file of {person}" in found
        assert ("alice" in found) != ("bob" in found)
        assert f"{person}{person}" in team.ask(person, f"ot.result(handle={handles[person]!r})")
    # Podman does not restart by itself what depends on a container that has ended, as all here do.
    team.machine.podman("start", team.container(gone))
    team.wait_until_healthy(gone)
    assert team.inspect(left)["RestartCount"] == 0


@pytest.mark.soak
def test_a_background_run_is_carried_out_by_the_worker(team: ShippedTeam) -> None:
    id = team.ask("alice", "ot.background(command='6 * 7')['id']")
    ended = ""
    for _ in patiently():
        ended = team.ask("alice", f"(lambda run: [run['state'], run.get('texts')])(ot.run_state(id={id!r}))")
        if "done" in ended:
            break
    assert json.loads(ended) == ["done", ["42"]]
    # What pg_dump copies has it, without who and what.
    copy = team.execute("postgres", "pg_dump", "--username", "onetool", "onetool")
    assert id in copy
    assert "alice" not in copy


def test_the_database_has_no_rights_and_its_role_none_over_others(team: ShippedTeam) -> None:
    found = team.inspect("postgres")
    assert (found["EffectiveCaps"] or [], found["HostConfig"]["ReadonlyRootfs"]) == ([], True)
    assert "no-new-privileges" in " ".join(found["HostConfig"]["SecurityOpt"])
    assert team.execute("postgres", "id", "--user", "--name").strip() == "postgres"
    ask = "SELECT rolname, rolsuper, rolcreaterole, rolcreatedb, rolpassword IS NULL FROM pg_authid WHERE rolcanlogin"
    roles = team.execute("postgres", "psql", "-XAtU", "postgres", "-c", f"{ask} ORDER BY 1").split()
    assert roles == ["onetool|f|f|f|f", "postgres|t|t|t|t"]
    asked = "import os, psycopg; psycopg.connect(os.environ['POSTGRES_URL'].replace('onetool:', 'postgres:'))"
    said = team.execute("onetool-1", "python", "-c", asked, check=False)
    assert 'password authentication failed for user "postgres"' in said


def test_our_containers_have_no_rights_and_nothing_to_write_to_but_what_is_mounted(team: ShippedTeam) -> None:
    for service in OURS:
        found = team.inspect(service)
        assert (found["EffectiveCaps"] or [], found["HostConfig"]["ReadonlyRootfs"]) == ([], True)
        assert "no-new-privileges" in " ".join(found["HostConfig"]["SecurityOpt"])
        assert found["HostConfig"]["Memory"] == 4 << 30
        assert team.execute(service, "id", "--user", "--name").strip() == "onetool"
        refused = team.execute(service, "sh", "-c", "echo > /opt/onetool/x || echo > /work/x", check=False)
        assert refused.count("Read-only file system") == 2


def test_what_is_shared_can_be_reached_by_name_from_inside_alone(team: ShippedTeam) -> None:
    services = (*OURS, "balancer", "postgres", "valkey", "s3", "collector")
    found = {service: team.inspect(service)["NetworkSettings"] for service in services}
    networks = {service: {name.rpartition("_")[2] for name in one["Networks"]} for service, one in found.items()}
    assert {service for service, names in networks.items() if "outside" in names} == {*OURS, "balancer"}
    assert all("inside" in names for names in networks.values())
    published = {
        service: [binding for bindings in (one["Ports"] or {}).values() for binding in bindings or ()]
        for service, one in found.items()
    }
    places = {service: {binding["HostIp"] for binding in all_of} for service, all_of in published.items() if all_of}
    assert places == {"balancer": {"127.0.0.1"}}


def test_nobody_has_a_secret_of_another(team: ShippedTeam) -> None:
    def names(service: str) -> set[str]:
        return {pair.partition("=")[0] for pair in team.inspect(service)["Config"]["Env"]}

    for service in ("s3", "postgres"):
        assert not names(service) & {"STATE_KEY", "REDIS_URL", "POSTGRES_URL", "S3_SECRET_ACCESS_KEY"}
    for service in ("valkey", "balancer", "collector"):
        assert not {name for name in names(service) if re.search("KEY|URL|PASSWORD|SECRET", name)}
    assert "redis://worker:" in " ".join(team.inspect("worker")["Config"]["Env"])
    assert "redis://replica:" in " ".join(team.inspect("onetool-1")["Config"]["Env"])


ASK_STORE = """
import urllib.request as r
try:
    print(r.urlopen(r.Request('http://s3:8333/onetool/results', method='PUT', data=b'x'), timeout=20).status)
except r.HTTPError as refused:
    print(refused.code)
"""


def test_the_store_lets_in_nobody_without_its_key(team: ShippedTeam) -> None:
    assert team.execute("onetool-1", "python", "-c", ASK_STORE).strip() == "403"


@pytest.mark.soak
def test_spans_reach_the_collector_and_the_audit_log_is_written(team: ShippedTeam) -> None:
    team.ask("alice", "file.write(path='audited.txt', content='x')")
    for _ in patiently():
        if "/v1/traces" in team.machine.podman("logs", team.container("collector"), check=False):
            break
    assert "/v1/traces" in team.machine.podman("logs", team.container("collector"), check=False)
    assert "token|alice" in team.execute("onetool-1", "cat", "/var/log/onetool/audit.jsonl")


def test_without_one_of_its_secrets_nothing_starts(team: ShippedTeam) -> None:
    lines = (team.deploy / ".env").read_text().splitlines()
    left = [line for line in lines if not line.startswith("POSTGRES_PASSWORD=")]
    (team.deploy / "less.env").write_text("\n".join(left))
    said = team.type("docker compose --env-file less.env config", check=False)
    assert "POSTGRES_PASSWORD is missing a value: is not in .env" in said


def test_the_exact_engine_passes_its_self_test_in_the_image(team: ShippedTeam) -> None:
    rights = ("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges")
    found = json.loads(team.machine.podman("run", "--rm", *rights, IMAGE, "doctor", "--json"))
    said = [finding["text"] for finding in found["findings"] if finding["area"] == "engine"]
    assert found["ok"]
    assert any("programs run in the exact engine" in text for text in said)
    for layer in ("seccomp", "landlock", "rlimits"):
        assert any(text.startswith(f"layer {layer}: on") for text in said)
    assert not [finding for finding in found["findings"] if finding["state"] == "problem"]


@pytest.mark.soak
def test_people_reach_the_exact_engine_over_the_balancer(team: ShippedTeam) -> None:
    for person in PEOPLE:
        assert team.ask(person, "ot.health()['engine']['name']").strip('"') == "exact"


@pytest.fixture(scope="module")
def pods(team: ShippedTeam) -> Generator[PlayedPods]:
    with played_pods(team.machine) as started:
        yield started


@pytest.mark.soak
def test_a_pod_of_each_deployment_starts_without_rights_and_with_the_home_of_the_other(pods: PlayedPods) -> None:
    homes: list[str] = []
    for file, name, port in (("deployment.yaml", "onetool", 8000), ("worker.yaml", "worker", 8001)):
        with pods.play(file, name) as container:
            ready = pods.wait_until_ready(container, port)
            assert (ready["status"], ready["engine"], "shared_state" in ready) == ("ready", "exact", False)
            found = pods.inspect(container)
            assert (found["EffectiveCaps"] or [], found["HostConfig"]["ReadonlyRootfs"]) == ([], True)
            assert found["Config"]["User"] == "1000:1000"
            home = "/home/onetool/.onetool"
            linked = pods.machine.podman("exec", container, "readlink", "--canonicalize", f"{home}/onetool.yaml")
            assert linked.strip() == "/etc/onetool/onetool.yaml"
            homes.append(pods.machine.podman("exec", container, "stat", "--format=%i", home))
    assert homes[0] == homes[1]
