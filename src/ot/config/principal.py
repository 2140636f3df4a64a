"""Principals: whose results and statistics are whose, and where each one's are kept."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

FOLDER = "principals"


def os_user() -> str:
    """Return the principal that the operating system knows this process as."""
    return f"uid:{os.getuid()}" if hasattr(os, "getuid") else "user"


def place_of(principal: str, directory: Path) -> Path:
    """Return where *principal*'s part of *directory* is: that of this process's own user is the directory itself."""
    if principal == os_user():
        return directory
    return directory / FOLDER / hashlib.sha256(principal.encode()).hexdigest()[:32]
