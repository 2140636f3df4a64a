"""Tool and Parameter: what can be called, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

ParameterKind = Literal["positional", "any", "keyword", "args", "kwargs"]
"""How a parameter may be given: only by place, either way, only by name, the rest by place, the rest by name."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool, with its annotation and default as source text."""

    name: str
    kind: ParameterKind = "any"
    annotation: str = ""
    default: str | None = None
    description: str = ""

    @property
    def required(self) -> bool:
        """True when a call must give it."""
        return self.default is None and self.kind not in ("args", "kwargs")


@dataclass(frozen=True, slots=True)
class Tool:
    """One function of a pack; ``target`` tells its backend what to call."""

    pack: str
    name: str
    parameters: tuple[Parameter, ...] = ()
    returns: str = ""
    doc: str = ""
    source: str = "local"
    backend: str = "in_process"
    target: str = ""
    timeout: float | None = None
    destructive: bool = False
    format: str | None = None
    secrets: tuple[str, ...] = field(default=())

    @property
    def full_name(self) -> str:
        """``pack.name``, as a program writes it."""
        return f"{self.pack}.{self.name}"

    @property
    def description(self) -> str:
        """The first paragraph of the docstring, on one line."""
        return " ".join(self.doc.strip().split("\n\n", 1)[0].split())
