"""What ``onetool check`` and ``onetool doctor`` look at, and what they report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

State = Literal["ok", "note", "problem"]
"""A note is worth knowing and no fault; a problem makes the command end with 1."""


@dataclass(frozen=True)
class Finding:
    """One thing; ``fix`` carries out what ``advice`` says and returns what it did."""

    area: str
    state: State
    text: str
    advice: str = ""
    fix: Callable[[], str] | None = field(default=None, repr=False, compare=False)
