"""Whose runs they were: the name that a client gives itself, in both eras, ends up in the statistics."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from faults.watched import CONFIG, Place
from faults.wire_eras import ERAS, start_talk
from ot.stats.query import read_figures

TOOLS, WORDS = 60, "Take some of the books on this shelf, the oldest first."


@pytest.mark.parametrize("era", ERAS)
def test_runs_are_counted_under_the_clients_name_and_its_definitions_once(tmp_path: Path, era: str) -> None:
    place = Place.make(tmp_path, CONFIG)
    add_pack(place)
    talk = start_talk(place, era)
    with talk.wire:
        for _ in range(3):
            assert not talk.run("1 + 1").result.get("isError")
        listed = talk.request("tools/list")
        said = talk.instructions()
    figures = read_figures(place.home / ".onetool" / "stats" / "stats.db", "all", time.time())
    assert [(one["client"], one["runs"]) for one in figures.clients] == [("wire", 3)]
    assert figures.runs["connections"] == 1
    # What is weighed is what a client really gets, give or take the protocol's own wrapping.
    sent = len(said) + len(json.dumps(listed.result["tools"]))
    assert figures.runs["our_chars"] == pytest.approx(sent, rel=0.1)
    assert figures.runs["flat_chars"] > 2 * figures.runs["our_chars"]


def add_pack(place: Place) -> None:
    """Give the user a pack of their own: nobody would list bundled packs without OneTool, so they do not count."""
    file = place.config.parent / "tools" / "shelf" / "shelf_tools.py"
    file.parent.mkdir(parents=True)
    names = [f"take_{number}" for number in range(TOOLS)]
    tools = [f'def {name}(*, count: int = 1) -> int:\n    """{WORDS}"""\n    return count\n' for name in names]
    file.write_text(f"pack = 'shelf'\n__all__ = {names}\n\n\n" + "\n\n".join(tools))
