"""The cases of the escape corpus, as the file says them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

CORPUS = Path(__file__).parents[1] / "corpus" / "escapes.yaml"


@dataclass(frozen=True)
class Case:
    """One way out that somebody thought of; each of its commands is a run of its own."""

    id: str
    name: str
    commands: tuple[str, ...]
    then: str
    escaped_if: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The case's name in a list of tests."""
        return f"{self.id}-{self.name}"


@cache
def escape_cases() -> tuple[Case, ...]:
    """Return all cases of the corpus."""
    document = yaml.safe_load(CORPUS.read_text(encoding="utf-8"))
    return tuple(_case(entry) for entry in document["cases"])


def _case(entry: Mapping[str, Any]) -> Case:
    commands = entry.get("variants") or [entry["code"] if "code" in entry else eval(entry["code_gen"])]
    return Case(entry["id"], entry["name"], tuple(commands), entry.get("then", ""), entry["escaped_if"])
