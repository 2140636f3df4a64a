"""The tutorial of the first pack, followed from its first line to its last, does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from console_blocks import Typed, typed_commands
from test_readme import ROOT
from uv_outside import uv_cache_dir

PAGE = ROOT / "docs/tutorial/first-pack.md"
STEP = re.compile(r'^```(?:console\n(?P<typed>.*?)|python title="(?P<file>[^"]+)"\n(?P<text>.*?))^```', re.M | re.S)

SLOW = re.compile(r"^[-0-9]{10} .* slow call: .*\n", re.M)
"""What the log says on a machine that is busy with other things."""


@pytest.mark.timeout(240)
def test_the_tutorial_of_the_first_pack_does_what_it_says(tmp_path: Path, home: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "UV_CACHE_DIR": uv_cache_dir(),
    }
    steps = list(STEP.finditer(PAGE.read_text(encoding="utf-8")))
    assert [bool(step["file"]) for step in steps] == [False, True, False, False]
    for step in steps:
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["text"], encoding="utf-8")
        for typed in typed_commands(step[0]):
            check(typed, tmp_path, environment)


def check(typed: Typed, cwd: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "-c", typed.command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )
    printed = SLOW.sub("", done.stdout + done.stderr)
    assert typed.is_kept_by(printed), f"$ {typed.command}\npromised:\n{typed.output}\nprinted:\n{printed}"
