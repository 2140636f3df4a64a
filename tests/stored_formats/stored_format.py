"""StoredFormat: something that one process writes and a later one reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class StoredFormat:
    """How a sample of it is made and read, and what every reader must find in it."""

    name: str
    make: Callable[[Path], None]
    """Writes the sample's files into an empty directory, by the code that writes them for users."""
    read: Callable[[Path], Any]
    """Returns, as plain data, what today's code reads from a copy of the sample, which it may change."""
    expected: Any
