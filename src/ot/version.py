"""The installed version, read without the cost of ``importlib.metadata``: ``onetool --version`` waits for it."""

from __future__ import annotations

import os
import sys
from functools import cache

FOLDER = "onetool_run-", ".dist-info"
"""How the name of the folder with the distribution's metadata begins and ends; between is the version."""


@cache
def installed_version() -> str:
    """Return the version of the distribution that this code belongs to; an upgrade does not change a process's own."""
    start, end = FOLDER
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 - pathlib's import takes longer than everything here
        except OSError:
            continue
        for name in names:
            if name.startswith(start) and name.endswith(end):
                return name[len(start) : -len(end)]
    return "0+unknown"
