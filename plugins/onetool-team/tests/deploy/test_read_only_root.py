"""A replica that can write only to its ~/.onetool says what else it needs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from checkout import ROOT
from pace import PATIENCE

CONFIG = f"""\
http:
  tokens: {{alice: {{hash: "sha256:{hashlib.sha256(b"hers").hexdigest()}"}}}}
"""
PROGRAM = "import sys; from ot.entry import main; sys.argv = ['onetool', *sys.argv[1:]]; main()"
HOME = "/home/onetool"


def test_without_a_place_for_its_state_it_says_which_variable_gives_one(tmp_path: Path) -> None:
    bwrap = shutil.which("bwrap")
    assert bwrap, "bubblewrap is not installed: .ci/system"
    config = tmp_path / "onetool.yaml"
    config.write_text(CONFIG)
    held = [bwrap, "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/home"]
    for needed in {str(ROOT), sys.prefix, sys.base_prefix}:  # they may lie below it
        held += ["--ro-bind", needed, needed]
    held += ["--tmpfs", f"{HOME}/.onetool", "--ro-bind", str(config), f"{HOME}/.onetool/onetool.yaml"]
    held += ["--remount-ro", "/home", "--chdir", "/", "--clearenv", "--setenv", "HOME", HOME]
    held += ["--setenv", "PYTHONPATH", str(ROOT / "src")]
    command = [*held, sys.executable, "-c", PROGRAM, "serve", "--http", "0", "--json"]
    replica = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert replica.returncode != 0
    assert "XDG_STATE_HOME" in replica.stderr
    assert "Traceback" not in replica.stderr
