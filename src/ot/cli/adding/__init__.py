"""What ``onetool add`` can add: presets, API documents, settings given on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ServerToAdd:
    """A name, its settings as they are written, and lines of advice; ``login``: it offers nothing before one."""

    name: str
    entry: Mapping[str, Any]
    advice: tuple[str, ...] = ()
    login: bool = False
