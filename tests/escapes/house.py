"""House: a bed with a project in it, a directory outside of both, and all of the environment of the tests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bed import SOURCE, Bed


@dataclass(frozen=True)
class House(Bed):
    """Real directories, and the real command that works in them."""

    @classmethod
    def make(cls, root: Path, config: str = "") -> Self:
        """Make the directories; the user has no settings."""
        house = cls(root / "home", root / "work")
        for path in (house.user, house.cwd, house.outside):
            path.mkdir(parents=True)
        return house

    @property
    def outside(self) -> Path:
        """What neither the user's settings nor the project holds."""
        return self.home.parent / "outside"

    def environment(self, **more: str) -> dict[str, str]:
        """Return all that the tests have."""
        return {**os.environ, "HOME": str(self.home), "PYTHONPATH": str(SOURCE), **more}


OWN = {"logs", "stats", "projects", "ledger", "runs", "undo"}
"""Where the server writes for itself."""


def everything(directory: Path) -> dict[str, bytes | None]:
    """Return what a directory holds, but for what the server writes for itself; folders hold nothing themselves."""
    found = [path for path in sorted(directory.rglob("*")) if not OWN & set(path.parts)]
    return {str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None for path in found}
