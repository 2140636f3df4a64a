"""The machine's own cache of uv: tests have homes of their own, and would otherwise download everything anew."""

from __future__ import annotations

import os
import subprocess

OUTSIDE = dict(os.environ)
"""As it was before any test: this file is imported while tests are collected."""


def uv_cache_dir() -> str:
    """Return where uv keeps what it has downloaded."""
    asked = subprocess.run(["uv", "cache", "dir"], env=OUTSIDE, capture_output=True, text=True, check=True)
    return asked.stdout.strip()
