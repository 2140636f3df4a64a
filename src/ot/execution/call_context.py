"""CallContext: what is known of a call while it is carried out; LanguageModel: the model that its tool may ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from ot.errors import ChatError
from ot.execution.caller import Caller
from ot.execution.deadline import Deadline
from ot.execution.ledger import Effect, HowEnded
from ot.files.path_guard import PathGuard
from ot.files.run_writes import RunWrites
from ot.registry.tool import Tool


class LanguageModel(Protocol):
    """The model that tools may ask: ``ask`` and ``extract`` block a plain function, the others are awaited."""

    def ask(self, text: str) -> str:
        """Return the model's answer to *text*."""
        ...

    def extract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the model for an object that fits the JSON schema *schema*."""
        ...

    async def aask(self, text: str) -> str:
        """Return as ``ask``, for a coroutine."""
        ...

    async def aextract(self, text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return as ``extract``, for a coroutine."""
        ...

    def within(self, *, questions: int | None = None, tokens: int | None = None) -> LanguageModel:
        """Return the same model for a part of what the run may ask."""
        ...


type OpenModel = Callable[[], LanguageModel]
"""Returns the model of one run; raises ChatError where none is configured. It may take its time."""


def no_model() -> LanguageModel:
    """Stand in for the model where there is none."""
    raise ChatError("no language model is available here: tools have one when OneTool runs them")


class ModelOfRun:
    """The model of one run, looked for when a tool first asks: all of its tools spend from one budget."""

    def __init__(self, find: Callable[[], OpenModel]) -> None:
        """Open what *find* returns; it is asked once."""
        self._find = find
        self._found: OpenModel | None = None
        self._lock = Lock()

    def __call__(self) -> LanguageModel:
        """Return the model; raises ChatError where there is none."""
        with self._lock:
            self._found = self._found or self._find()
        return self._found()


type Told = Callable[[str, str, Mapping[str, Any]], None]
"""Takes what a tool tells while it runs: ``print``, ``progress``, ``content`` (a block for the reply), ``note`` (a text
beside its value), with the tool's name and details; must be quick and must not raise."""

type CallTool = Callable[[str, str, Sequence[Any], Mapping[str, Any]], Awaitable[Any]]
"""Calls another tool for a tool, by pack, name and arguments, through the door of the same run; raises ToolError."""

type Foresee = Callable[[str, int | None], CallForecast]
"""Returns what is known of the calls of a tool that a program would still make, one of which stands in that line."""


class Approval(Protocol):
    """Holds a run to what its user says about the tools that ask first."""

    async def require(self, tool: Tool, arguments: Mapping[str, Any], context: CallContext, need: str = "") -> str:
        """Return, when the user allows the call, how: "consent" or "always"; raise NotApproved.

        *need* is the tool whose permission is asked for, where it is not that of *tool* itself.
        """
        ...

    async def require_again(self, tool: Tool, arguments: Mapping[str, Any], why: str, advice: str) -> None:
        """Ask the user to allow this one call, saying *why* it is doubtful; raise NotApproved unless they do.

        Where nobody can be asked, *advice* says what to do.
        """
        ...


class EffectsOfRun(Protocol):
    """Collects what the calls of one run have done; must be quick and must not raise."""

    def note(self, effect: Effect, how: HowEnded) -> None:
        """Take note of how a call ended that may have changed something."""
        ...

    def add_unrecorded(self, why: str) -> None:
        """Take note of a call that is sent though it could not be written down."""
        ...


@dataclass(frozen=True, slots=True)
class CallForecast:
    """What is known of a call and of those like it that are to come: ``most`` is None where nobody can tell.

    ``alone`` is a call that a model makes by itself, without a program. ``file`` is the saved program of the line.
    """

    line: int | None = None
    text: str = ""
    waiting: int = 0
    most: int | None = 1
    alone: bool = False
    file: str = ""


@dataclass(slots=True, eq=False)
class CallContext:
    """Who calls, under which id, until when (on the monotonic clock), and what a tool may ask for meanwhile.

    ``clock`` is the run's own, which stands still while a question waits. ``deadline`` is the run's too, until the call
    is carried out: then it is the call's own.
    ``consent`` is what the run's user has said; ``line`` and ``foresee`` tell of the program for the question.
    ``open_llm`` returns the model that the tools of the run may ask.
    """

    caller: Caller
    run_id: str
    call_id: int
    deadline: float
    told: Told | None = None
    call: CallTool | None = None
    clock: Deadline | None = None
    consent: Approval | None = None
    line: int | None = None
    foresee: Foresee | None = None
    open_llm: OpenModel = no_model
    guard: PathGuard | None = None
    """What opens the paths that a program names, for a tool in a process of its own."""
    effects: EffectsOfRun | None = None
    """Takes what the run's calls have done, for its reply."""
    start: int = 0
    """The number of the run's start, of a run in the background."""
    key: str = ""
    """What names this call and no other, for tools that can tell the same one twice; empty: it changes nothing.

    Until the call is carried out it is what whoever asked for it from another host knows it by.
    """
    writes: RunWrites = field(default_factory=RunWrites)
    """What the run may still write, and what its user has said of it."""
