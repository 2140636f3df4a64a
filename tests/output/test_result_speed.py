"""A large result costs what its page costs, in time and in memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from output.store_faults import fault


def measure(directory: Path, lines: int, timeout: float) -> dict[str, float]:
    script = Path(__file__).parent / "store_large.py"
    done = subprocess.run(
        [sys.executable, str(script), str(directory), str(lines)],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(report: dict[str, float]) -> None:
    assert report["store"] <= 4000
    assert report["first"] <= 20
    assert report["last"] <= 40
    assert report["fuzzy"] <= 1200
    assert report["megabytes"] <= 64


@fault("S08")
def test_a_hundred_megabytes_are_stored_paged_and_searched_within_bounds(tmp_path: Path) -> None:
    report = measure(tmp_path / "tmp", 1_000_000, 100)
    check(report)
    assert report["search"] <= 200
    assert report["hostile"] <= 400


@fault("S08")
@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_gigabyte_is_stored_and_paged_within_bounds(tmp_path: Path) -> None:
    check(measure(tmp_path / "tmp", 10_000_000, 500))
