"""Programs of the system that some tests need; ``.ci/system`` installs their packages."""

from __future__ import annotations

import os
import shutil

import pytest


def require_programs(*programs: str) -> None:
    """Skip the test when a program is missing; in CI, which has installed them all, fail it."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not installed: {', '.join(missing)}; run .ci/system")
