"""README's commands, typed in a fresh clone, do what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from console_blocks import Typed, typed_commands

ROOT = Path(__file__).parents[1]


def fresh_clone(target: Path) -> Path:
    """Copy what a clone would hold: every file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


@pytest.mark.timeout(300)
def test_the_commands_of_the_readme_do_what_it_says(tmp_path: Path, home: Path) -> None:
    clone = fresh_clone(tmp_path / "clone")
    uv = subprocess.run([str(ROOT / ".ci/find-uv")], capture_output=True, text=True, check=True).stdout.strip()
    bin_dir = tmp_path / "bin"
    environment = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{bin_dir}:{Path(uv).parent}:{os.environ['PATH']}",
        "UV_PYTHON": sys.executable,
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(bin_dir),
        "UV_CACHE_DIR": os.environ.get("UV_CACHE_DIR") or uv_cache(uv),
    }
    typed = typed_commands((clone / "README.md").read_text())
    assert len(typed) >= 6
    for entry in typed:
        check(entry, clone, environment)


def uv_cache(uv: str) -> str:
    """Return the cache that uv uses outside of this test, so that nothing is fetched twice."""
    return subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()


def check(typed: Typed, cwd: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", typed.command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=240
    )
    printed = done.stdout + done.stderr
    assert typed.is_kept_by(printed), f"$ {typed.command}\npromised:\n{typed.output}\nprinted:\n{printed}"
