"""The entries of faults.yaml that are proved here, each as the parameter of one test."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

CORPUS = Path(__file__).parents[1] / "corpus" / "faults.yaml"
AREAS = ("run", "config", "mcp-stdio")
IDS = frozenset({"P03", "P04", "P06"})
"""Entries of other areas that are proved here already."""


@cache
def faults() -> dict[str, dict[str, Any]]:
    """Return the entries of our areas by id."""
    entries = yaml.load(CORPUS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["faults"]
    return {entry["id"]: entry for entry in entries if entry["area"] in AREAS or entry["id"] in IDS}


def fault(id: str) -> pytest.MarkDecorator:
    """Name the entry that a test proves; the test gets it as ``fault``."""
    entry = faults()[id]
    return pytest.mark.parametrize("fault", [pytest.param(entry, id=id)])
