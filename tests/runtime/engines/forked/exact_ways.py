"""The ways in which the exact engine is attacked: with every layer and with fewer, as root and as an ordinary user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import exact_attacks
import pytest

SOURCE = Path(__file__).parents[4] / "src"
AS_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""Becomes an ordinary user without any capability, also where no other user could read this Python."""
WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "every layer": ((), ()),
    "no namespaces": ((), ("--no-namespaces",)),
    "ordinary user": (AS_USER, ()),
    "ordinary user, no namespaces": (AS_USER, ("--no-namespaces",)),
}
BETWEEN = ("no namespaces", "ordinary user")
EACH_WAY = [pytest.param(way, marks=pytest.mark.soak) if way in BETWEEN else way for way in WAYS]
"""All of them; the ways between the strongest and the weakest only in the long runs."""


@cache
def attacked(way: str) -> dict[str, Any]:
    """Return what the attacks came to in an engine of that way; each way is tried once."""
    prefix, options = WAYS[way]
    if prefix and (
        shutil.which(prefix[0]) is None
        or subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("an ordinary user cannot be made here")
    done = subprocess.run(
        [*prefix, sys.executable, exact_attacks.__file__, *options],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "SBX_CANARY": "canary"},
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
