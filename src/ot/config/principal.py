"""Principals: who owns results and statistics, and where each principal's are kept."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
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
    take_room: Callable[[int], None] = lambda size: None
    """Counts bytes that a program is about to write; raises OSError where there is no room for them. It may block."""

    @property
    def is_user(self) -> bool:
        """Whether it is the user of this process, whose configuration is used."""
        return self.principal == os_user()


def place_of(principal: str, directory: Path) -> Path:
    """Return *principal*'s part of *directory*: for this process's own user the directory itself."""
    if principal == os_user():
        return directory
    return directory / FOLDER / hashlib.sha256(principal.encode()).hexdigest()[:32]
