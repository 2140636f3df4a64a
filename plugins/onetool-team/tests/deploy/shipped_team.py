"""The compose file in deploy/, started word for word as its README says, and people who use what it starts."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shlex
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from checkout import ROOT
from deploy.shipped_images import ContainerMachine
from http_server import ACCEPT, CLASSIC, call, text_of
from pace import PATIENCE, patiently

IN_IMAGE = ("Dockerfile", ".dockerignore", "LICENSE", "README.md", "pyproject.toml", "requirements.lock")
DIRECTORIES = ("deploy", "packs", "plugins", "src")
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
URL = "http://127.0.0.1:8080"
NOBODYS = "0" * 64
TO_START = 4 * PATIENCE
SERVERS = ("postgres", "valkey", "onetool-1", "onetool-2", "worker")
"""Those that the compose file gives a check of their health."""
ASK = f"""
import json, sys, urllib.request as r
token, request = json.loads(sys.argv[1])
headers = {{"authorization": "Bearer " + token, "accept": "{ACCEPT}", "content-type": "application/json"}}
headers["mcp-protocol-version"] = "{CLASSIC}"
asked = r.Request("http://127.0.0.1:8000/mcp", json.dumps(request).encode(), headers)
try:
    print(json.load(r.urlopen(asked, timeout=60))["result"]["content"][0]["text"])
except r.HTTPError:
    pass
"""


@dataclass
class ShippedTeam:
    """A newcomer's checkout, and what runs of it."""

    machine: ContainerMachine
    checkout: Path
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    typed: dict[str, float] = field(default_factory=dict[str, float])
    """How many seconds each command took."""

    @property
    def deploy(self) -> Path:
        """Where the compose file is."""
        return self.checkout / "deploy"

    def copy(self) -> None:
        """Copy what a checkout has of what is needed."""
        self.checkout.mkdir()
        for name in IN_IMAGE:
            shutil.copy(ROOT / name, self.checkout)
        for name in DIRECTORIES:
            left = shutil.ignore_patterns("__pycache__", "tests", ".env")
            shutil.copytree(ROOT / name, self.checkout / name, ignore=left)

    # ---------------------------------------------------------------- as README says

    def follow_readme(self) -> None:
        """Type each command of deploy/README.md, and do by hand what it leaves to whoever types it."""
        (block,) = COMMANDS.findall((self.deploy / "README.md").read_text(encoding="utf-8"))
        for line in block.splitlines():
            command = shlex.join(shlex.split(line, comments=True))
            if command == "cd deploy":
                continue
            if "PASSWORD" in command:
                self._give_passwords(line)
            elif not command.endswith(" down"):
                printed = self.type(command)
                self._do_by_hand(command, printed)

    def type(self, command: str, *, check: bool = True) -> str:
        """Return what a command prints in deploy/."""
        begun = time.monotonic()
        try:
            return self.machine.run("bash", "-c", command, cwd=self.deploy, check=check)
        finally:
            self.typed[command] = round(time.monotonic() - begun, 1)

    def _do_by_hand(self, command: str, printed: str) -> None:
        if command.startswith("cp "):
            self._fill_in(self.deploy / ".env")
        elif " token " in command:
            name = command.split()[-1]
            (self.tokens[name],) = re.findall(r"^otk_\S+", printed, re.MULTILINE)
            (entry,) = re.findall(rf'^    {name}:\n      hash: "(.*)"', printed, re.MULTILINE)
            self.let_in(name, entry)

    def _fill_in(self, file: Path) -> None:
        text = re.sub(r"^(\w+)=$", lambda found: f"{found[1]}={secrets.token_hex(32)}", file.read_text(), flags=re.M)
        file.write_text(text)

    @property
    def secrets(self) -> dict[str, str]:
        """What is in .env."""
        lines = (self.deploy / ".env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))

    def _give_passwords(self, line: str) -> None:
        users = self.deploy / "redis-users.acl"
        for user in ("replica", "worker"):
            password = self.secrets[f"{user.upper()}_REDIS_PASSWORD"]
            digest = self.type(line.replace("PASSWORD", password)).split()[0]
            assert digest == hashlib.sha256(password.encode()).hexdigest()
            users.write_text(users.read_text().replace(f"user {user} on #{NOBODYS}", f"user {user} on #{digest}"))

    def let_in(self, name: str, entry: str) -> None:
        """Put a person's token into the configuration, as an editor does: a new file takes the old one's place."""
        file = self.deploy / "config" / "onetool.yaml"
        text = re.sub(r"^    alice:\n      hash: sha256:0+ .*\n", "", file.read_text(), flags=re.MULTILINE)
        text = text.replace("  tokens:\n", f"  tokens:\n    {name}:\n      hash: {entry}\n")
        edited = file.with_suffix(".new")
        edited.write_text(text)
        edited.rename(file)

    # ---------------------------------------------------------------- what runs

    def container(self, service: str) -> str:
        """Return the name of a service's container."""
        label = f"label=com.docker.compose.service={service}"
        return self.machine.podman("ps", "--all", "--filter", label, "--format", "{{.Names}}").strip()

    def inspect(self, service: str) -> dict[str, Any]:
        """Return what podman knows of a service's container."""
        (found,) = json.loads(self.machine.podman("inspect", self.container(service)))
        return found

    def execute(self, service: str, *command: str, check: bool = True) -> str:
        """Return what a command prints in a service's container."""
        return self.machine.podman("exec", self.container(service), *command, check=check)

    def wait_until_healthy(self, *services: str) -> None:
        """Return once the check of each service, which nothing asks for here, says that it is well."""
        for service in services:
            for _ in patiently(TO_START):
                if not self.machine.podman("healthcheck", "run", self.container(service), check=False).strip():
                    break
            else:
                raise AssertionError(f"{service}: {self.machine.podman('logs', self.container(service), check=False)}")

    def wait_until_served(self) -> None:
        """Return once the balancer knows a replica that is ready."""
        for _ in patiently(TO_START):
            try:
                if httpx2.get(f"{URL}/readyz", verify=False, timeout=PATIENCE).status_code == 200:
                    return
            except httpx2.HTTPError:
                continue
        raise AssertionError(self.machine.podman("logs", self.container("balancer"), check=False))

    def post(self, person: str, command: str) -> httpx2.Response:
        """Have the balancer bring a person's command to some replica."""
        headers = {"authorization": f"Bearer {self.tokens[person]}", "accept": ACCEPT}
        headers |= {"content-type": "application/json", "mcp-protocol-version": CLASSIC}
        request = call(command, CLASSIC)
        return httpx2.post(f"{URL}/mcp", json=request, headers=headers, timeout=2 * PATIENCE, verify=False)

    def ask_replica(self, replica: str, person: str, command: str) -> dict[str, Any]:
        """Return the value that one replica gives a person's command."""
        return json.loads(self.execute(replica, *self.question(person, command)))

    def question(self, person: str, command: str) -> tuple[str, ...]:
        """Return what asks a replica from inside of its container, and prints nothing there if it is refused."""
        return ("python", "-c", ASK, json.dumps([self.tokens[person], call(command, CLASSIC)]))

    def ask(self, person: str, command: str) -> str:
        """Return what a person's command comes to, once the balancer knows a replica that can be asked."""
        response = self.post(person, command)
        for _ in patiently():
            if response.status_code != 503:
                break
            response = self.post(person, command)
        log = self.machine.podman("logs", self.container("balancer"), check=False)
        assert response.status_code == 200, f"{response.status_code} {response.text}\n{log}"
        return text_of(response)


@contextmanager
def shipped_team(machine: ContainerMachine, checkout: Path) -> Generator[ShippedTeam]:
    """Yield the team once everything that README starts is well; all of it goes with the block."""
    team = ShippedTeam(machine, checkout)
    team.copy()
    try:
        team.follow_readme()
        team.wait_until_healthy(*SERVERS)
        team.wait_until_served()
        yield team
    finally:
        # What people made goes, too, which README's own command would keep.
        team.type("docker compose down --volumes --timeout 0", check=False)
