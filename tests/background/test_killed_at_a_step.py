"""Whoever carries a run out is killed at each step of the ledger: nothing is done twice, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "killed_at_a_step.py"
STEPS = 10


def killed(directory: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Return what became of a run for each step and round."""
    done = subprocess.run(
        [sys.executable, PROGRAM, directory, str(rounds)], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def nothing_doubled_and_nothing_lost(run: dict[str, Any]) -> None:
    added, states = run["added"], Counter(state for _, state in run["entries"])
    assert len(set(added)) == len(added), run
    assert {number for number, state in run["entries"] if state == "done"} <= set(added), run
    # What is not known to be done is told to be unknown: no effect is without an entry.
    assert len(added) <= states["done"] + states["unknown"], run
    if run["state"] == "done":
        assert added == [0, 1, 2], run
    else:
        assert (run["state"], bool(states)) == ("stopped", True), run
        assert all(any(f"- {word}: " in text for text in run["texts"]) for word in ("done", "unknown") if states[word])


def check(runs: list[dict[str, Any]], rounds: int) -> None:
    assert Counter(run["step"] for run in runs) == dict.fromkeys({run["step"] for run in runs}, rounds)
    assert len(runs) == STEPS * rounds
    for run in runs:
        nothing_doubled_and_nothing_lost(run)
    again = {run["step"] for run in runs if run["state"] == "done"}
    assert {"the run has begun", "the run's end is committed"} <= again
    assert not again & {"the call is committed, and not sent", "the call is answered"}


@pytest.mark.timeout(240)
def test_b1_fifty_kills_at_the_steps_of_the_ledger_double_nothing(tmp_path: Path) -> None:
    check(killed(tmp_path, 5, 200), 5)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_b1_fifty_kills_at_each_step_of_the_ledger_double_nothing(tmp_path: Path) -> None:
    check(killed(tmp_path, 50, 1000), 50)
