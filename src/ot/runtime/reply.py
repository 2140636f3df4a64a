"""Reply: what run() answers, before any protocol shapes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reply:
    """The texts of an answer, whether it is a failure, and what is to be known about the run.

    ``blocks`` are content that is no text (images, audio, resources), as MCP writes it.
    """

    texts: tuple[str, ...]
    is_error: bool = False
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    blocks: tuple[Mapping[str, Any], ...] = ()
    cause: str = ""
    """What a failure came from: the error of a call, the exception that left the program, or the limit it used up."""
