"""Principals: whose results and statistics are whose, and where each one's are kept."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = "principals"


def os_user() -> str:
    """Return the principal that the operating system knows this process as."""
    return f"uid:{os.getuid()}" if hasattr(os, "getuid") else "user"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a workspace is, and what that one alone has; nothing said, it is the user of this process."""

    principal: str = field(default_factory=os_user)
    secrets_file: Path | None = None
    """Secrets that win over those of the configuration."""
    shared: tuple[Path, ...] = ()
    """Directories that programs may read and not write."""

    @property
    def is_user(self) -> bool:
        """Whether it is the user of this process, whose configuration is used."""
        return self.principal == os_user()


def place_of(principal: str, directory: Path) -> Path:
    """Return where *principal*'s part of *directory* is: that of this process's own user is the directory itself."""
    if principal == os_user():
        return directory
    return directory / FOLDER / hashlib.sha256(principal.encode()).hexdigest()[:32]
