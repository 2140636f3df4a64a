"""The private directory in which a server runs, unless its user wrote another one."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from ot.registry.server_identity import ServerIdentity

HOMES = "homes"
BARRIERS: Mapping[str, str] = {
    "package.json": '{"private": true}\n',
    "pyproject.toml": "[tool.uv]\nmanaged = false\n",
}
"""Where npm's and uv's search for a project to obey ends, which otherwise goes up to the root."""


def server_home(global_dir: Path, identity: ServerIdentity) -> Path:
    """Return the directory of a server: another one when something else is written of it, or by another project."""
    return global_dir / HOMES / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', identity.server)}-{identity.written}"


def make_home(directory: Path) -> None:
    """Make *directory* for a server, readable by its user alone; what is there is kept.

    Raises:
        OSError: It cannot be made.
    """
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    for name, text in BARRIERS.items():
        with suppress(FileExistsError):
            descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
