"""The faults of the result store in faults.yaml, each named by the tests that prove it."""

from __future__ import annotations

from collections.abc import Callable

import yaml

from faults.faults_corpus import CORPUS


def store_faults() -> set[str]:
    """Return the ids of the area."""
    entries = yaml.load(CORPUS.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["faults"]
    return {entry["id"] for entry in entries if entry["area"] == "store"}


def fault[T: Callable[..., None]](_id: str) -> Callable[[T], T]:
    """Name the entry that a test proves."""
    return lambda test: test
