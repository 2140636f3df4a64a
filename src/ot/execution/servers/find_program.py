"""Finds the program of a server's command, also where the PATH of a desktop's client does not lead."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

PLACES = (
    "~/.local/bin",
    "~/.cargo/bin",
    "~/.bun/bin",
    "~/.deno/bin",
    "~/.volta/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
)
"""Where uv, node and their kin are installed; clients that are started from a desktop do not look there."""


def find_program(command: str, environ: Mapping[str, str], cwd: Path) -> tuple[str, dict[str, str]]:
    """Return the program's path, from *cwd* on where it is one, and *environ* with a PATH for the program's own kin.

    Raises:
        FileNotFoundError: There is no such program.
    """
    # A relative entry would be sought where the client happens to stand.
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    path = os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
    if os.path.dirname(command):  # noqa: PTH120 - pathlib takes ./program for a bare name
        command = str(cwd / command)
    if found := shutil.which(command, path=path):
        return found, dict(environ)
    home = environ.get("HOME", "~")
    more = [place.replace("~", home, 1) for place in PLACES]
    if found := shutil.which(command, path=os.pathsep.join(more)):
        return found, {**environ, "PATH": f"{Path(found).parent}{os.pathsep}{path}"}
    raise FileNotFoundError(f"the command '{command}' was not found: install it, or write its full path")
