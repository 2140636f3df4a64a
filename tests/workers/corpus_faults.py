"""The faults of workers and their supervisor in faults.yaml, each as the parameter of one test."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import yaml

from faults.faults_corpus import CORPUS

AREAS = ("worker", "supervisor")
REPETITIONS = 20

Fault = dict[str, Any]


@cache
def faults() -> dict[str, Fault]:
    """Return the entries of both areas by id."""
    entries = yaml.load(CORPUS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["faults"]
    return {entry["id"]: entry for entry in entries if entry["area"] in AREAS}


def fault(*ids: str, repetitions: int = REPETITIONS) -> pytest.MarkDecorator:
    """Name the entries that a test proves; it gets the first as ``fault``, once in the checks, often in a soak."""
    entry = {**faults()[ids[0]], "all": ids}
    rounds = [
        pytest.param({**entry, "seed": n}, id=f"{'-'.join(ids)}-{n}", marks=pytest.mark.soak)
        for n in range(repetitions)
    ]
    return pytest.mark.parametrize("fault", [pytest.param({**entry, "seed": 0}, id="-".join(ids)), *rounds[1:]])
