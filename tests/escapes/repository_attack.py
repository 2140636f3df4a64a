"""A repository attack, as the file of all of them says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

CORPUS = Path(__file__).with_name("repository_attacks.yaml")
WORKERS = "workers"
"""The group whose packs are installed first, which takes as long as many other attacks."""

type Stage = Literal["before_trust", "screen", "after_trust", "changed_after_trust"]
type Step = str | Mapping[str, Any]
"""A command line of ``onetool``; or ``run``, ``asked``, ``process``, ``serve`` or ``pull`` with what goes with it."""


@dataclass(frozen=True)
class Attack:
    """Files of a cloned directory, what the user then does in it, and what must not come of it."""

    id: str
    group: str
    title: str
    stage: Stage
    files: Mapping[str, Any]
    steps: Sequence[Step]
    home: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Files of the user's beside the usual ones."""
    work: str = "work"
    """What the cloned directory is called."""
    asked: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """What the user wanted in the own configuration: servers by name, files by path below the home directory."""
    must_show: Sequence[str] = ()
    must_say: Sequence[str] = ()
    """Patterns for what may be said in several ways."""
    must_not_say: Sequence[str] = ()
    must_not_hold: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts that files of the project must not hold, by the file's path."""
    must_not_send: Sequence[str] = ()
    may_hold: Sequence[str] = ()
    """Files of the project that hold a secret from the beginning."""
    memory_mb: int = 0
    cpu_seconds: float = 0.0
    """How long all steps may compute; 0 is no limit."""

    @property
    def trusts(self) -> bool:
        """Whether the user trusts the project on the way."""
        return any(isinstance(step, str) and step.startswith("trust --yes") for step in self.steps)

    @property
    def label(self) -> str:
        """The attack's name in a list of tests."""
        return f"{self.stage}-{self.id}"


@cache
def repository_attacks() -> tuple[Attack, ...]:
    """Return all attacks of the corpus."""
    return tuple(Attack(**entry) for entry in yaml.load(CORPUS.read_bytes(), Loader=yaml.CSafeLoader))
