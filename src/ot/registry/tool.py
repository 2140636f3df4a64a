"""Tool and Parameter: what can be called, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
    """One function of a pack; ``target`` tells its backend what to call.

    ``read_only`` and ``destructive`` are the tool's own word; None is no word at all. ``input_schema`` is there when
    arguments are to be checked against more than names. ``observed`` tells of a return type that was learned,
    ``definition`` is the hash of the definition that a proxied server gave. A ``decorated`` function may convert its
    arguments, so its annotations do not bind who calls it.
    """

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
    read_only: bool | None = None
    format: str | None = None
    secrets: tuple[str, ...] = field(default=())
    input_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    observed: str = ""
    definition: str = ""
    decorated: bool = False

    @property
    def full_name(self) -> str:
        """``pack.name``, as a program writes it."""
        return f"{self.pack}.{self.name}"

    @property
    def description(self) -> str:
        """The first paragraph of the docstring, on one line."""
        return " ".join(self.doc.strip().split("\n\n", 1)[0].split())
