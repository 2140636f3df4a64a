"""House: a user's home, a working directory with a project in it, and `onetool serve` between them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_wire import WireServer
from ot.config.inventory import take_inventory
from ot.config.paths import Paths
from ot.config.trust import Trust
from ot.workspace import Workspace

SOURCE = Path(__file__).parents[2] / "src"
SERVE = "from ot.entry import main; main()"


@dataclass(frozen=True)
class House:
    """Real directories, and the real command that works in them."""

    home: Path
    work: Path
    outside: Path

    @classmethod
    def build(cls, directory: Path) -> House:
        """Make the directories."""
        house = cls(directory / "home", directory / "work", directory / "outside")
        for path in (house.settings, house.work, house.outside):
            path.mkdir(parents=True)
        return house

    @property
    def settings(self) -> Path:
        """The user's own .onetool directory."""
        return self.home / ".onetool"

    @property
    def project(self) -> Path:
        """The project's .onetool directory."""
        return self.work / ".onetool"

    def user_file(self, text: str, name: str = "onetool.yaml") -> Path:
        """Write a file of the user's."""
        return write(self.settings / name, text)

    def project_file(self, text: str, name: str = "onetool.yaml") -> Path:
        """Write a file of the project's."""
        return write(self.project / name, text)

    def trust(self) -> None:
        """Say what `onetool trust --yes` says."""
        Trust(self.settings).trust(take_inventory(self.project))

    def app(self, *, trust_project: bool = False) -> Workspace:
        """Return the application that would be served."""
        return Workspace.alone(Paths.of(self.work, self.settings), trust_project=trust_project)

    def serve(self, *options: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> WireServer:
        """Start `onetool serve`."""
        command = [sys.executable, "-c", SERVE, "serve", *options]
        return WireServer.start(command, cwd=cwd or self.work, env=self._environment(env))

    def onetool(self, *arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run another command of `onetool` to its end."""
        command = [sys.executable, "-c", SERVE, *arguments]
        return subprocess.run(
            command, cwd=self.work, env=self._environment(env), capture_output=True, text=True, timeout=60, check=False
        )

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "PYTHONPATH": str(SOURCE), **(env or {})}


def write(path: Path, text: str) -> Path:
    """Write a file that only its owner may read, with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def everything(directory: Path) -> dict[str, bytes | None]:
    """Return what a directory holds, but for the server's own log, statistics and ledger; folders hold nothing themselves."""
    found = [path for path in sorted(directory.rglob("*")) if not {"logs", "stats", "projects", "ledger"} & set(path.parts)]
    return {str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None for path in found}
