"""Every fault of models' services in the corpus is injected by a test that names it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent


def test_every_fault_of_models_services_has_a_test() -> None:
    corpus: list[dict[str, Any]] = yaml.safe_load((HERE.parents[3] / "tests/corpus/faults.yaml").read_text())["faults"]
    wanted = {fault["id"] for fault in corpus if fault["area"] == "llm"}
    named = {id for file in HERE.glob("test_*.py") for id in re.findall(r'"""(L\d\d)[.:]', file.read_text())}
    assert wanted
    assert named == wanted
