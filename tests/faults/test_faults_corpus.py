"""Every entry of our areas has a test that carries its id."""

from __future__ import annotations

import re
from pathlib import Path

from faults.faults_corpus import faults


def test_every_fault_of_our_areas_is_injected_by_a_test() -> None:
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*_faults.py"))
    assert set(faults()) == set(re.findall(r'@fault\("(\w+)"\)', tests))
