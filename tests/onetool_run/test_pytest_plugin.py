"""The pytest plugin replays each cassette that has a program beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CASSETTE = """cassette: 1
clock: '2026-11-19T10:00:00+00:00'
seed: 1
packs: [nowhere]
calls:
- call: nowhere.find
  kwargs: {what: x}
  returns: found
result: {value: FOUND}
"""


def test_pytest_replays_programs_with_cassettes(tmp_path: Path) -> None:
    for name, method in (("good", "upper"), ("bad", "lower")):
        (tmp_path / f"{name}.py").write_text(f"nowhere.find(what='x').{method}()")
        (tmp_path / f"{name}.cassette.yaml").write_text(CASSETTE)
    (tmp_path / "alone.cassette.yaml").write_text(CASSETTE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "onetool_run.pytest_plugin", "-p", "no:cacheprovider", "."]
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "value: recorded 'FOUND', now 'found'" in done.stdout
    assert "1 failed, 1 passed" in done.stdout
