"""Desk: a user's directory and a project's, with real files, for the tests of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ot.config.inventory import take_inventory
from ot.config.load import Loaded, load_config
from ot.config.paths import Paths
from ot.config.trust import Trust


@dataclass
class Desk:
    """The user's directory and a project's, with real files in both."""

    cwd: Path
    user: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def project(self) -> Path:
        return self.cwd / ".onetool"

    @property
    def paths(self) -> Paths:
        return Paths.of(self.cwd, self.user)

    @property
    def trust(self) -> Trust:
        return Trust(self.user)

    def write_user(self, text: str | bytes, name: str = "onetool.yaml") -> Path:
        return write(self.user / name, text)

    def write_project(self, text: str | bytes, name: str = "onetool.yaml") -> Path:
        return write(self.project / name, text)

    def trust_project(self) -> None:
        self.trust.trust(take_inventory(self.project))

    def load(self, trust: Trust | None = None, *, trust_project: bool = False) -> Loaded:
        paths = replace(self.paths, environ=self.environment)
        return load_config(paths, trust or self.trust, trust_project=trust_project)


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path
