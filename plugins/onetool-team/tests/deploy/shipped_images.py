"""Images for the files in deploy/: ours, and those that no registry has here."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import resource
import shutil
import subprocess
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from checkout import ROOT
from output.s3_process import SEAWEED
from real_servers.catalogues import command_of, install
from real_servers.server_table import RealServer
from release.containers import require_containers
from system_package import require_programs

BASE = "localhost/debian:trixie"
IMAGE = "onetool-run:team"
SUBSTITUTES = {
    "valkey": "docker.io/valkey/valkey:8.1-alpine",
    "postgres": "docker.io/library/postgres:17-alpine",
    "haproxy": "docker.io/library/haproxy:3.2-alpine",
    "seaweedfs": "docker.io/chrislusf/seaweedfs:4.48",
    "collector": "docker.io/otel/opentelemetry-collector:0.130.0",
}
COMPOSE = RealServer("podman-compose", "pypi", "podman-compose", "1.6.0", "podman-compose")
HERE = Path(__file__).parent / "substitutes"
SECONDS = 500
MOST = 16384
"""Files, and processes, of a container."""
LOCK = Path("/var/lock/onetool-as-shipped")
"""Names and ports are those of the files in deploy/, so a machine has them once."""


@dataclass(frozen=True)
class ContainerMachine:
    """This machine as podman is to use it: *place* has its settings, which are not those of the user."""

    place: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """What programs are given that start containers; their ``docker`` is podman."""
        path = f"{self.place}:{os.environ['PATH']}"
        return os.environ | {"PATH": path, "CONTAINERS_CONF": str(self.place / "run.conf"), "BASE": BASE}

    def prepare(self) -> None:
        """Write the settings, and a ``docker`` that understands ``docker compose``."""
        # The defaults are above what a machine may itself be limited to; the balancer wants 8,019 files.
        kinds = {"nofile": resource.RLIMIT_NOFILE, "nproc": resource.RLIMIT_NPROC}
        most = {name: min(MOST, resource.getrlimit(kind)[1]) for name, kind in kinds.items()}
        limits = f"default_ulimits = {json.dumps([f'{name}={number}:{number}' for name, number in most.items()])}"
        network = '[engine]\nruntime = "runc"\n[network]\nnetwork_backend = "netavark"\n'
        (self.place / "run.conf").write_text(f"[containers]\n{limits}\n{network}")
        (self.place / "uv.toml").write_text("system-certs = true\n")
        options = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
        lines = [line for line in options.splitlines() if line.startswith("Acquire")]
        (self.place / "apt.options").write_text("\n".join(lines))
        # What a build fetches comes the way in which this machine fetches it.
        mounts = {
            "/etc/ssl/certs": "/etc/ssl/certs",
            "/etc/pip.conf": "/etc/pip.conf",
            str(self.place / "uv.toml"): "/etc/uv/uv.toml",
            str(self.place / "apt.options"): "/etc/apt/apt.conf.d/99way-out",
        }
        volumes = json.dumps([f"{here}:{there}:ro" for here, there in mounts.items() if Path(here).exists()])
        (self.place / "build.conf").write_text(
            f'[containers]\nnetns = "host"\nvolumes = {volumes}\n{limits}\n{network}'
        )
        docker = self.place / "docker"
        compose = command_of(COMPOSE, self.place)[0]
        docker.write_text(f"""\
#!/bin/sh
[ "$1" = compose ] || exec podman "$@"
shift
[ "$1" = build ] && export CONTAINERS_CONF={self.place}/build.conf BUILDAH_LAYERS=false
exec {compose} "$@"
""")
        docker.chmod(0o755)

    def podman(self, *arguments: str, check: bool = True) -> str:
        """Return what podman prints."""
        return self.run("podman", *arguments, check=check)

    def run(self, *command: str, check: bool = True, build: bool = False, cwd: Path | None = None) -> str:
        """Return what a command prints; with *check*, it must succeed."""
        environment = dict(self.environment)
        if build:
            environment |= {"CONTAINERS_CONF": str(self.place / "build.conf"), "BUILDAH_LAYERS": "false"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cwd, timeout=SECONDS)
        assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout if check else done.stdout + done.stderr

    def build_substitutes(self) -> None:
        """Build those images that the compose file names and this machine does not have."""
        context = self.place / "context"
        context.mkdir()
        for name in ("count_spans.py", "start_postgres"):
            shutil.copy(HERE / name, context)
        shutil.copy(command_of(SEAWEED, context)[0], context / "weed")
        missing = {target: name for target, name in SUBSTITUTES.items() if not self._has(name)}
        # With layers, the packages are installed once for all images that need them.
        for target, name in missing.items():
            file = ("--file", str(HERE / "Dockerfile"), "--target", target, "--tag", name)
            self.run("podman", "build", "--quiet", "--layers", "--network", "host", *file, str(context), build=True)

    def _has(self, image: str) -> bool:
        return bool(self.podman("images", "--quiet", image))

    def remove_images(self) -> None:
        """Remove what was built, and nothing else: the substitutes say that they are some."""
        ours = self.podman("images", "--quiet", "--filter", "label=onetool.substitute=yes").split()
        for image in {*ours, IMAGE}:
            self.podman("rmi", "--force", image, check=False)


@contextmanager
def container_machine(place: Path) -> Generator[ContainerMachine]:
    """Yield the machine once nobody else uses the names of deploy/; every image that was built goes with the block."""
    require_containers()
    require_programs("/usr/lib/podman/netavark", "/usr/lib/podman/aardvark-dns", "catatonit", "iptables")
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with ThreadPoolExecutor(1) as elsewhere:  # a test may have a loop of its own here
            for program in (SEAWEED, COMPOSE):
                elsewhere.submit(asyncio.run, install(program)).result()
        subprocess.run([str(ROOT / ".ci/base-image"), "trixie"], check=True, timeout=SECONDS)
        machine = ContainerMachine(place)
        machine.prepare()
        try:
            machine.build_substitutes()
            yield machine
        finally:
            machine.remove_images()
