"""Reply: what run() answers, before any protocol shapes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ot.errors import OneToolError


@dataclass(frozen=True)
class Reply:
    """What a run comes to: texts for a model, the value for a program, and what is to be known about the run."""

    texts: tuple[str, ...]
    """What was printed, then the value or the failure, each as a text of its own."""
    is_error: bool = False
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    """Metadata of the run, sent over MCP and printed by ``onetool run --json``."""
    blocks: tuple[Mapping[str, Any], ...] = ()
    """Content that is not text (images, audio, resources), as MCP writes it."""
    value: Any = field(default=None, repr=False)
    """The value as plain data, whole even where the text is only the summary of what was stored."""
    has_value: bool = False
    """Whether there is a value: None may be one."""
    cause: str = ""
    """What a failure came from: the error of a call, the exception that left the program, or the limit it used up."""
    calls: int = 0
    """How many calls of tools were made."""
    handles: tuple[str, ...] = ()
    """The handles of texts that were stored because they are large: prints first, then the value."""

    @property
    def text(self) -> str:
        """All texts, one below the other."""
        return "\n".join(text.removesuffix("\n") for text in self.texts)

    @property
    def error(self) -> str:
        """The class of the failure, such as ``ProgramFailed``; empty when there is none."""
        return self.meta.get("error", "")

    @property
    def engine(self) -> str:
        """The engine that ran the program."""
        return self.meta.get("engine", "")

    @property
    def run(self) -> str:
        """The run's id, as events and the log name it."""
        return self.meta.get("run", "")

    @property
    def seconds(self) -> float:
        """How long the run took."""
        return self.meta.get("ms", 0.0) / 1000

    @property
    def tolerated(self) -> tuple[str, ...]:
        """The rows of the table of tolerances by which the program was read."""
        return tuple(self.meta.get("tolerated", ()))


@dataclass(frozen=True)
class BareReply(Reply):
    """What one call comes to for another program: nothing is written out, and the failure is the error itself."""

    printed: str = ""
    """What tools printed."""
    failure: OneToolError | None = field(default=None, repr=False)
