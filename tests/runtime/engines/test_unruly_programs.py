"""Programs that attack the server through their own run end as runs end, and harm nobody else."""

from __future__ import annotations

import pytest
import unruly_programs
from exact_ways import EACH_WAY, attacked

ENDS = {"value", "ProgramFailed", "LimitExceeded", "EngineCrashed"}
MOST_PAUSE_SECONDS = 1.5
"""On a busy machine; 0.1 to 0.3 s were measured."""
MOST_GROWTH_MB = 400


@pytest.mark.parametrize("way", EACH_WAY)
def test_every_unruly_program_ends_as_a_run_ends(way: str) -> None:
    found = attacked(way)["unruly"]
    assert found["ends"].keys() == unruly_programs.EVERY.keys()
    assert {name: end for name, end in found["ends"].items() if end not in ENDS} == {}
    assert found["problems"] == []


@pytest.mark.parametrize("way", EACH_WAY)
def test_honest_runs_beside_them_are_answered_rightly_and_nothing_is_reached(way: str) -> None:
    found = attacked(way)["unruly"]
    assert found["wrong"] == []
    assert found["reached"] == []


@pytest.mark.parametrize("way", EACH_WAY)
def test_the_server_neither_stands_still_nor_fills_its_memory(way: str) -> None:
    found = attacked(way)["unruly"]
    assert found["pause"] < MOST_PAUSE_SECONDS
    assert found["grown_mb"] < MOST_GROWTH_MB


def test_floods_and_forged_messages_are_not_taken_for_results() -> None:
    ends = attacked("every layer")["unruly"]["ends"]
    taken = [name for name, end in ends.items() if name.startswith("flood: ") and end == "value"]
    assert taken == []
    alike = {end for name, end in ends.items() if name.endswith("have one hash")}
    assert alike == {"EngineCrashed"}
    assert len(ends) >= 30
