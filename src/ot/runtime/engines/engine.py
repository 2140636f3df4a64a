"""Engine: the seam between a run and whatever evaluates its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ot.config.models import Limits
from ot.errors import EngineCrashed
from ot.execution.deadline import Deadline
from ot.output.presentable import Describe, describe_type
from ot.runtime.program import Program


class NoValue:
    """The mark of a program that ended without a value (None is a value)."""

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE = NoValue()


@dataclass(frozen=True)
class Outcome:
    """What a program came to: its value, what it printed, and what it asked of the reply."""

    value: Any = NO_VALUE
    printed: str = ""
    format: Any = None
    sanitize: Any = None
    describe: Describe = describe_type


@dataclass(frozen=True)
class Constant:
    """An attribute of a pack that is plain data, such as ``proj.<name>``."""

    value: Any


@dataclass(frozen=True)
class Function:
    """An attribute of a pack that can be called."""


@dataclass(frozen=True)
class Missing:
    """An attribute that a pack does not have; a call of it fails with the list of what it has."""


class Reach(Protocol):
    """All that a program can reach: packs by name, their members, and calls through the door."""

    def has_pack(self, name: str) -> bool:
        """Return whether *name* is a pack."""
        ...

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return what ``pack.name`` is."""
        ...

    async def call(
        self, pack: str, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], *, line: int | None = None
    ) -> Any:
        """Return the value of a tool call; raise ToolError, or RunError when the run itself must end.

        *line* is where the call stands in the program, if the engine knows it.
        """
        ...


@dataclass(frozen=True)
class EngineHealth:
    """How an engine is."""

    name: str
    status: str = "ok"
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


class EngineSession(Protocol):
    """Variables that one program leaves to the next; its programs run one at a time."""

    @property
    def lost(self) -> str:
        """Why the variables are gone; empty while they are kept."""
        ...

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the outcome, as ``Engine.run`` does; a program that fails leaves what it had assigned.

        Raises:
            RunError: The program ended without one.
        """
        ...

    async def aclose(self) -> None:
        """Forget the variables."""
        ...


class StillbornRun(EngineCrashed):
    """The process died before it had begun with the program: another can run it."""


class Engine(Protocol):
    """Evaluates a program; it can reach nothing but what it is handed."""

    @property
    def name(self) -> str:
        """The engine's name, as replies and health tell it."""
        ...

    def refuse(self, program: Program, reach: Reach) -> None:
        """Return when the engine can run *program* faithfully.

        Raises:
            NotSupported: It cannot; nothing has run.
        """
        ...

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the outcome, by *deadline*, which moves on while the user is asked something.

        Raises:
            RunError: The program ended without one; what it printed is in ``printed`` of the error.
        """
        ...

    async def open_session(self) -> EngineSession:
        """Return a new session, without variables."""
        ...

    async def health(self) -> EngineHealth:
        """Return how the engine is, at once."""
        ...

    async def aclose(self) -> None:
        """End everything that the engine started."""
        ...
