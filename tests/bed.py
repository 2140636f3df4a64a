"""Bed: a user's home, a directory to work in, and the real server between them, in each form that it has.

    bed = Bed.make(tmp_path, "limits: {run_seconds: 2}\n")
    with bed.stdio() as server: ...               # `onetool serve`, spoken to byte by byte: a WireServer
    with bed.stdio("--trust-project") as server: ...
    bed.typed("ps", "--json").stdout              # any other command, run to its end

``SharedBed`` in shared_bed.py adds the server that a user's clients share (``bed.client()``); ``HttpServer.start`` of
http_server.py starts one over HTTP in a bed, ``WorkerProcess.start`` a worker of a team.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from checkout import ROOT
from mcp_wire import WireServer
from ot.config.inventory import take_inventory
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.workspace import Workspace
from pace import PATIENCE

SOURCE = ROOT / "src"
TESTS = ROOT / "tests"
ONETOOL = str(Path(sys.executable).with_name("onetool"))
CONFIG = "logs: {level: WARNING}\n"


@dataclass(frozen=True)
class Bed:
    """Real directories of one user, and the real command that works in them."""

    home: Path
    cwd: Path

    @classmethod
    def make(cls, root: Path, config: str = CONFIG) -> Self:
        """Make both below *root*, with *config*."""
        bed = cls(root / "home", root / "work")
        bed.user.mkdir(parents=True, exist_ok=True)
        bed.cwd.mkdir(exist_ok=True)
        if not bed.config.exists() or bed.config.read_text() != config:  # else another server may be reading it
            bed.config.write_text(config)
        return bed

    @property
    def user(self) -> Path:
        """The user's own .onetool directory."""
        return self.home / ".onetool"

    @property
    def project(self) -> Path:
        """The project's .onetool directory."""
        return self.cwd / ".onetool"

    @property
    def config(self) -> Path:
        """The user's configuration."""
        return self.user / "onetool.yaml"

    @property
    def secrets(self) -> Path:
        """The user's secrets."""
        return self.user / "secrets.yaml"

    def user_file(self, text: str, name: str = "onetool.yaml") -> Path:
        """Write a file of the user's."""
        return write(self.user / name, text)

    def project_file(self, text: str, name: str = "onetool.yaml") -> Path:
        """Write a file of the project's."""
        return write(self.project / name, text)

    def trust(self) -> None:
        """Say what `onetool trust --yes` says."""
        Trust(self.user).trust(take_inventory(self.project))

    def environment(self, **more: str) -> dict[str, str]:
        """Return what the server inherits: little, and that nobody sits at a terminal."""
        kept = {name: value for name, value in os.environ.items() if name == "PATH" or name.startswith("COVERAGE_")}
        return {**kept, "HOME": str(self.home), "CI": "1", "PYTHONPATH": str(SOURCE), **more}

    def app(self, *, trust_project: bool = False) -> Workspace:
        """Return the application that would be served."""
        return Workspace.alone(Paths.of(self.cwd, self.user), trust_project=trust_project)

    def stdio(
        self, *options: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, **how: Any
    ) -> WireServer:
        """Start `onetool serve` for a client of its own; *how* is that of ``WireServer.start``."""
        where, environ = cwd or self.cwd, self.environment(**(env or {}))
        return WireServer.start([ONETOOL, "serve", *options], cwd=where, env=environ, **how)

    def typed(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Type a command of ``onetool``, and wait until it has ended."""
        return subprocess.run(
            [ONETOOL, *arguments],
            cwd=self.cwd,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
            check=False,
            stdin=subprocess.DEVNULL,
        )


def write(path: Path, text: str) -> Path:
    """Write a file that only its owner may read, with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path
