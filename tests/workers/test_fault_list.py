"""Every fault of workers and their supervisor has a test."""

from __future__ import annotations

import re
from pathlib import Path

from workers.corpus_faults import faults

HERE = Path(__file__).parent


def test_every_fault_of_the_areas_is_proved_by_a_test() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py"))
    named = {id for ids in re.findall(r"@fault\(([^)]*)\)", sources) for id in re.findall(r'"(W\d\d)"', ids)}
    assert set(faults()) == named
