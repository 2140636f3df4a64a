"""The Kubernetes objects of deploy/ as far as podman plays them: Deployments, with configuration, secrets and home."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from checkout import ROOT
from deploy.shipped_images import SUBSTITUTES, ContainerMachine
from deploy.shipped_team import TO_START
from pace import patiently, wait_while

OBJECTS = ROOT / "deploy" / "kubernetes"
NETWORK = "onetool-played"
REDIS, POSTGRES = "valkey.onetool.svc", "postgres.onetool.svc"
ROLE, PASSWORD = "onetool", secrets.token_hex(32)
SECRETS: Mapping[str, Mapping[str, str]] = {
    "onetool": {
        "STATE_KEY": secrets.token_hex(32),
        "POSTGRES_URL": f"postgresql://{ROLE}:{PASSWORD}@{POSTGRES}/{ROLE}",
    },
    "onetool-replica": {"REDIS_URL": f"redis://{REDIS}:6379/0"},
    "onetool-worker": {"REDIS_URL": f"redis://{REDIS}:6379/0"},
}
VOLUMES = ("onetool", "onetool-home")
KEPT = "io.podman.annotations.init.container.type"
"""Else Podman 4.3 removes an init container now and then before it has seen its end, and fails."""
ASK = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:{}{}', timeout=20).read().decode())"


@dataclass(frozen=True)
class PlayedPods:
    """A network with a Redis and a PostgreSQL; one Deployment at a time is played there: podman publishes its ports."""

    machine: ContainerMachine

    @contextmanager
    def play(self, deployment: str, name: str) -> Generator[str]:
        """Yield the container *name* of the pod that a file of objects makes, with what it needs of the others."""
        file = self.machine.place / deployment
        names = ["config.yaml", "home.yaml", deployment]
        if self.machine.podman("volume", "ls", "--quiet", "--filter", f"name={VOLUMES[1]}"):
            names.remove("home.yaml")  # it is there already, which Podman takes for a mistake
        parts = [yaml.safe_load_all((OBJECTS / name).read_text(encoding="utf-8")) for name in names]
        objects = [thing for part in parts for thing in part]
        for thing in objects:
            if thing["kind"] == "Deployment":
                thing["metadata"]["annotations"] = {KEPT: "always"}
                thing["spec"]["replicas"] = 1  # podman publishes the ports of every pod on this machine
        file.write_text(yaml.safe_dump_all(objects))
        try:
            self.machine.podman("kube", "play", "--network", NETWORK, str(file))
            yield self.machine.podman("ps", "--filter", f"name=-{name}$", "--format", "{{.Names}}").strip()
        finally:
            self.machine.podman("kube", "down", str(file), check=False)
            self.machine.podman("volume", "rm", VOLUMES[0], check=False)  # the configuration; the home stays

    def inspect(self, container: str) -> dict[str, Any]:
        """Return what podman knows of it."""
        (found,) = json.loads(self.machine.podman("inspect", container))
        return found

    def wait_until_ready(self, container: str, port: int) -> dict[str, Any]:
        """Return what it says at /readyz once that is well."""
        for _ in patiently(TO_START):
            answer = self.machine.podman("exec", container, "python", "-c", ASK.format(port, "/readyz"), check=False)
            if answer.startswith("{"):
                return json.loads(answer)
        raise AssertionError(self.machine.podman("logs", container, check=False))

    def start(self) -> None:
        """Make what the cluster provides: a network, a Redis and a PostgreSQL by their names there, and the secrets."""
        self.machine.podman("network", "create", NETWORK)
        self._run(REDIS, SUBSTITUTES["valkey"], "valkey-server", "--protected-mode", "no")
        given = {"POSTGRES_USER": ROLE, "POSTGRES_PASSWORD": PASSWORD, "POSTGRES_DB": ROLE}
        self._run(POSTGRES, SUBSTITUTES["postgres"], **given)
        ready = ("exec", POSTGRES, "pg_isready", "--host", "127.0.0.1")
        wait_while(lambda: "accepting" not in (said := self.machine.podman(*ready, check=False)) and said)
        for name, values in SECRETS.items():
            data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
            self._make_secret(name, data)

    def _run(self, host: str, image: str, *command: str, **environment: str) -> None:
        where = ("--name", host, "--network", NETWORK, "--network-alias", host)
        given = [f"--env={name}={value}" for name, value in environment.items()]
        self.machine.podman("run", "--detach", *where, *given, image, *command)

    def _make_secret(self, name: str, data: Mapping[str, str]) -> None:
        version = self.machine.podman("version", "--format", "{{.Client.Version}}").split(".")
        # Podman 4.3 keeps an object of Kubernetes in a form that it does not read.
        whole = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
        kept = data if (int(version[0]), int(version[1])) < (4, 4) else whole
        command = ["podman", "secret", "create", name, "-"]
        subprocess.run(command, input=json.dumps(kept), text=True, check=True, capture_output=True, timeout=60)

    def remove(self) -> None:
        """Remove all of it."""
        podman = self.machine.podman
        podman("rm", "--force", "--volumes", "--time", "0", REDIS, POSTGRES, check=False)
        podman("network", "rm", NETWORK, check=False)
        podman("secret", "rm", *SECRETS, check=False)
        podman("volume", "rm", *VOLUMES, check=False)
        podman("rmi", *podman("images", "--quiet", "localhost/podman-pause").split(), check=False)


@contextmanager
def played_pods(machine: ContainerMachine) -> Generator[PlayedPods]:
    """Yield what plays Deployments, whose image is there already."""
    pods = PlayedPods(machine)
    try:
        pods.start()
        yield pods
    finally:
        pods.remove()
