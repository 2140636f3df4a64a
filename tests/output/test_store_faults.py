"""Every fault of the result store has a test."""

from __future__ import annotations

import re
from pathlib import Path

from output.store_faults import store_faults


def test_every_fault_of_the_store_is_proved_by_a_test() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert store_faults() == set(re.findall(r'^@fault\("(S\d\d)"\)$', sources, re.MULTILINE))
