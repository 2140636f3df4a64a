"""Engine: the seam between a run and whatever evaluates its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ot.config.models import Limits
from ot.errors import EngineCrashed
from ot.execution.deadline import Deadline
from ot.registry.saved_programs import SavedProgram
from ot.runtime.engines.given_time import GivenTime
from ot.runtime.program import Program
from ot.values.jsonable import Describe, describe_type


class NoValue:
    """The mark of a program that ended without a value (None is a value)."""

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE = NoValue()


@dataclass(frozen=True)
class Outcome:
    """The result of a program: its value, what it printed, and its wishes for the reply."""

    value: Any = NO_VALUE
    printed: str = ""
    format: Any = None
    sanitize: Any = None
    describe: Describe = describe_type
    tolerated: tuple[str, ...] = ()
    """The rows of the table of tolerances that the engine used."""
    notes: tuple[str, ...] = ()
    """Notes for the reader of the reply."""


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


type Place = tuple[str, int]
"""The name of a saved program, and a line of its text."""


class Reach(Protocol):
    """Everything a program can reach: packs by name, their members, and calls through the door."""

    @property
    def given(self) -> GivenTime | None:
        """The clock and the seed of a program that is recorded or replayed; others have those of the machine."""
        ...

    def has_pack(self, name: str) -> bool:
        """Return whether *name* is a pack."""
        ...

    def member(self, pack: str, name: str) -> Function | Constant | Missing:
        """Return the member ``pack.name``."""
        ...

    def saved(self, name: str) -> SavedProgram | None:
        """Return the saved program that the pack *name* is, if it is one that can be used."""
        ...

    async def call(
        self,
        pack: str,
        name: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        line: int | None = None,
        inside: Place | None = None,
    ) -> Any:
        """Return the value of a tool call; raise ToolError, or RunError when the run itself must end.

        *line* is the call's line in the program, if the engine knows it, and *inside* the place in the saved program
        that makes it. For a saved program's tool it is the EnteredProgram that the engine is to run now.
        """
        ...

    async def file(self, step: str, arguments: Mapping[str, Any]) -> Any:
        """Return the result of one operation of Python's own file functions; raise as ``call`` does."""
        ...

    def note_print(self, text: str) -> None:
        """Take note of what the program prints, at once; the outcome holds it, too."""
        ...


@dataclass(frozen=True)
class EngineHealth:
    """The state of an engine."""

    name: str
    status: str = "ok"
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


class EngineSession(Protocol):
    """Variables that one program leaves for the next; its programs run one at a time."""

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
    """The process died before it had started the program: another can run it."""


class Engine(Protocol):
    """Evaluates a program; it can reach nothing but what it is handed."""

    @property
    def name(self) -> str:
        """The engine's name, as replies and health show it."""
        ...

    def refuse(self, program: Program, reach: Reach) -> None:
        """Check that the engine can run *program* faithfully.

        Raises:
            NotSupported: It cannot; nothing has run.
        """
        ...

    async def run(self, program: Program, reach: Reach, limits: Limits, deadline: Deadline) -> Outcome:
        """Return the outcome, by *deadline*, which is extended while the user is asked something.

        Raises:
            RunError: The program ended without one; what it printed is in ``printed`` of the error.
        """
        ...

    async def open_session(self) -> EngineSession:
        """Return a new session, without variables."""
        ...

    async def health(self) -> EngineHealth:
        """Return the engine's state, at once."""
        ...

    async def aclose(self) -> None:
        """End everything that the engine started."""
        ...
